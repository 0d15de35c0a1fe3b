"""A history that is read before anybody asks: how far it is, said instead of figures."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.history import MINUTE_MS, Indicator, MinuteCounts, SpanCounts
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_report.sources.ahead import ReadAhead
from mm2slo_report.sources.port import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAY: Final = 86_400.0
INDICATOR: Final = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
SPAN: Final = Span(0, MINUTE_MS)
COUNTS: Final = SpanCounts(good=59.0, total=60.0, minutes=1)


class Read(NamedTuple):
    done: float
    whole: float


class Slow:
    """A source that reads until it is let go; the first *failures* readings fail."""

    name = "prometheus"

    def __init__(self, failures: int = 0) -> None:
        self.progress: Read | None = None
        self.asked: list[float] = []
        self.reads = threading.Event()
        self.go_on = threading.Event()
        self._failures = failures

    def read_ahead(self, seconds: float) -> None:
        self.asked.append(seconds)
        if len(self.asked) <= self._failures:
            raise SliSourceError("Prometheus at http://p is not reached: Connection refused")
        self.progress = Read(12 * DAY, 28.4 * DAY)
        self.reads.set()
        assert self.go_on.wait(30)
        self.progress = None

    def counts(
        self, indicators: Sequence[Indicator], spans: Sequence[Span]
    ) -> Mapping[Indicator, Mapping[Span, SpanCounts] | SliSourceError]:
        return {each: dict.fromkeys(spans, COUNTS) for each in indicators}

    def minutes(self, indicator: Indicator, span: Span) -> Sequence[MinuteCounts]:
        assert indicator == INDICATOR
        return [MinuteCounts(span.start, 59.0, 60.0, 0.0)]

    def known_since(self, indicators: Sequence[Indicator]) -> Mapping[Indicator, int | None]:
        return dict.fromkeys(indicators, 0)

    def indicators(self) -> Sequence[Indicator]:
        return [INDICATOR]

    def warnings(self, window: float) -> Sequence[str]:
        return [f"{window:g}"]


def test_until_all_is_read_every_answer_tells_how_far_it_is() -> None:
    slow = Slow()
    with ReadAhead(slow, 63 * DAY) as ahead:
        assert slow.reads.wait(30)
        said = "the history is being read from prometheus: 12 of 28 days so far"
        found = ahead.counts([INDICATOR], [SPAN])[INDICATOR]
        assert isinstance(found, SliSourceError)
        assert (str(found), found.slow) == (said, True)
        assert ahead.known_since([INDICATOR]) == {INDICATOR: None}
        assert ahead.warnings(28 * DAY) == (said,)
        with pytest.raises(SliSourceError, match="12 of 28 days"):
            ahead.minutes(INDICATOR, SPAN)
        with pytest.raises(SliSourceError, match="12 of 28 days"):
            ahead.indicators()
        slow.go_on.set()
        assert ahead.wait(30)
        assert ahead.counts([INDICATOR], [SPAN]) == {INDICATOR: {SPAN: COUNTS}}
        assert ahead.known_since([INDICATOR]) == {INDICATOR: 0}
        assert ahead.minutes(INDICATOR, SPAN) == [MinuteCounts(0, 59.0, 60.0, 0.0)]
        assert ahead.indicators() == [INDICATOR]
        assert ahead.warnings(60.0) == ["60"]
    assert slow.asked == [63 * DAY]
    assert ahead.name == "prometheus"


def test_what_could_not_be_read_is_told_and_read_again() -> None:
    slow = Slow(failures=2)
    with ReadAhead(slow, DAY, again=0.001) as ahead:
        assert slow.reads.wait(30)
        slow.go_on.set()
        assert ahead.wait(30)
    assert len(slow.asked) == 3


def test_a_failure_is_what_is_told_while_nothing_is_read() -> None:
    slow = Slow(failures=1)
    with ReadAhead(slow, DAY, again=30.0) as ahead:
        while not (failed := ahead.warnings(DAY)[0]).startswith("the history is not read yet"):
            assert failed == "the history is being read from prometheus"
    assert failed == (
        "the history is not read yet: Prometheus at http://p is not reached: Connection refused"
    )
    assert len(slow.asked) == 1
