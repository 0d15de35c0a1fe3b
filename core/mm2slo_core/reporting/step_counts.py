"""Event counts in steps of five minutes, the data model of all sources of history.

A step belongs to the span that it ends in. Steps that were not measured are omitted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, NamedTuple

from mm2slo_core.indicators.sli_counters import SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.topology import Flow

MINUTE_MS: Final = 60_000
STEP_MS: Final = 5 * MINUTE_MS


class Indicator(NamedTuple):
    flow: Flow
    key: SliKey


class Tally(NamedTuple):
    """Events of one indicator: a reading of its counters, or what they increased by."""

    good: float = 0.0
    total: float = 0.0
    unknown: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanCounts:
    """Events of the steps that end within a span, averaged over replicas.

    `minutes` is the measured time; `excluded` are events that the source itself left out as planned
    maintenance.
    """

    good: float = 0.0
    total: float = 0.0
    unknown: float = 0.0
    excluded: float = 0.0
    minutes: int = 0

    @classmethod
    def of_steps(
        cls, good: float, bad: float, unknown: float, steps: float, excluded: float = 0.0
    ) -> SpanCounts:
        """The sums of so many *steps*."""
        return cls(
            good=good,
            total=good + bad,
            unknown=unknown,
            excluded=excluded,
            minutes=round(steps) * STEP_MS // MINUTE_MS,
        )

    @property
    def bad(self) -> float:
        return self.total - self.good

    def __add__(self, other: SpanCounts) -> SpanCounts:
        return SpanCounts(
            good=self.good + other.good,
            total=self.total + other.total,
            unknown=self.unknown + other.unknown,
            excluded=self.excluded + other.excluded,
            minutes=self.minutes + other.minutes,
        )

    def __sub__(self, part: SpanCounts) -> SpanCounts:
        """Subtract a *part* of the span, such as planned maintenance."""
        total = _rest(self.total, part.total, self.total)
        return SpanCounts(
            good=total - _rest(self.bad, part.bad, self.total),
            total=total,
            unknown=_rest(self.unknown, part.unknown, self.unknown),
            # What the source left out itself is not in the other fields, so it stays.
            excluded=self.excluded,
            minutes=self.minutes - part.minutes,
        )


def _rest(whole: float, part: float, events: float) -> float:
    """*whole* without *part*, of so many *events*; 0 for the error of rounding."""
    # Means of replicas are fractions: their sums in another order differ in the last digits, and a
    # span of nothing but maintenance would have events without measured time.
    rest = whole - part
    return rest if rest > 1e-9 * events else 0.0


class StepCounts(NamedTuple):
    """Events of a step, or of another part of a history, that starts at `at` (epoch ms).

    It lasts `length` ms, of which `minutes` were measured.
    """

    at: int
    good: float
    total: float
    unknown: float
    length: int = MINUTE_MS
    minutes: int = 1

    @property
    def end(self) -> int:
        """When it ends (epoch ms), which decides what it belongs to."""
        return self.at + self.length


_END: Final = attrgetter("end")


def whole_minute(at: int) -> int:
    """*at* (epoch ms), rounded down to the minute."""
    return at - at % MINUTE_MS


def step_ending_at(
    end: int, span: Span, *, good: float, total: float, unknown: float
) -> StepCounts:
    """The step that ends at *end* (epoch ms), from the start of *span* on."""
    start = max(end - STEP_MS, span.start)
    return StepCounts(
        at=start,
        good=good,
        total=total,
        unknown=unknown,
        length=end - start,
        minutes=STEP_MS // MINUTE_MS,
    )


def count_span(steps: Sequence[StepCounts], span: Span) -> SpanCounts:
    """The sum of the *steps* (ascending) that end in *span*, that is after its start."""
    first, end = (bisect_right(steps, at, key=_END) for at in (span.start, span.end))
    within = steps[first:end]
    return SpanCounts(
        good=sum(map(attrgetter("good"), within)),
        total=sum(map(attrgetter("total"), within)),
        unknown=sum(map(attrgetter("unknown"), within)),
        minutes=sum(map(attrgetter("minutes"), within)),
    )
