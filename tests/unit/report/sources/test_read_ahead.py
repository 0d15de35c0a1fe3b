"""Reading a slow history in advance: progress and errors instead of figures."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS, Indicator, MinuteCounts, SpanCounts
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_report.sources.read_ahead import ReadAhead
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DAY: Final = 86_400.0
INDICATOR: Final = Indicator(Flow("us", "eu"), SliKey(Sli.AVAILABILITY))
SPAN: Final = Span(0, MINUTE_MS)
COUNTS: Final = SpanCounts(good=59.0, total=60.0, minutes=1)


class Read(NamedTuple):
    done: float
    whole: float


class SlowSource:
    """A source that reads until `go_on` is set; its first *failures* reads fail."""

    name = "prometheus"

    def __init__(self, failures: int = 0) -> None:
        self.progress: Read | None = None
        self.requests: list[float] = []
        self.reads = threading.Event()
        self.go_on = threading.Event()
        self._failures = failures

    def read_ahead(self, seconds: float) -> None:
        self.requests.append(seconds)
        if len(self.requests) <= self._failures:
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


def test_queries_before_completion_fail_with_the_progress() -> None:
    slow = SlowSource()
    with ReadAhead(slow, 63 * DAY) as ahead:
        assert slow.reads.wait(30)
        progress = "the history is being read from prometheus: 12 of 28 days so far"
        found = ahead.counts([INDICATOR], [SPAN])[INDICATOR]
        assert isinstance(found, SliSourceError)
        assert (str(found), found.slow) == (progress, True)
        assert ahead.known_since([INDICATOR]) == {INDICATOR: None}
        assert ahead.warnings(28 * DAY) == (progress,)
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
    assert slow.requests == [63 * DAY]
    assert ahead.name == "prometheus"


def test_failed_read_is_retried() -> None:
    slow = SlowSource(failures=2)
    with ReadAhead(slow, DAY, retry_after=0.001) as ahead:
        assert slow.reads.wait(30)
        slow.go_on.set()
        assert ahead.wait(30)
    assert len(slow.requests) == 3


def test_warnings_after_failed_read_contain_the_error() -> None:
    slow = SlowSource(failures=1)
    with ReadAhead(slow, DAY, retry_after=30.0) as ahead:
        while not (failed := ahead.warnings(DAY)[0]).startswith("the history could not be read"):
            assert failed == "the history is being read from prometheus"
    assert failed == (
        "the history could not be read: Prometheus at http://p is not reached: Connection refused"
    )
    assert len(slow.requests) == 1
