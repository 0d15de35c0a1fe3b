"""Event counts by whole minutes, the data model of all sources of history.

Sources remove counter resets. Events belong to the minute in which they were first scraped; events
of a gap without scrapes belong to the minute after it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.sli_counters import SliKey
    from mm2slo_core.topology import Flow

MINUTE_MS: Final = 60_000


class Indicator(NamedTuple):
    """One indicator of one flow."""

    flow: Flow
    key: SliKey


class Tally(NamedTuple):
    """Events of one indicator since the start of its history, without counter resets."""

    good: float = 0.0
    total: float = 0.0
    unknown: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanCounts:
    """Events first scraped within a span of whole minutes, averaged over replicas.

    `minutes` is the number of minutes with a sample; `excluded` are events that the source itself
    left out as planned maintenance. `coarse` marks hourly history, where events at
    the edges may belong to the neighbouring span.
    """

    good: float = 0.0
    total: float = 0.0
    unknown: float = 0.0
    excluded: float = 0.0
    minutes: int = 0
    coarse: bool = False

    @property
    def bad(self) -> float:
        """Bad events."""
        return self.total - self.good

    def __add__(self, other: SpanCounts) -> SpanCounts:
        return SpanCounts(
            good=self.good + other.good,
            total=self.total + other.total,
            unknown=self.unknown + other.unknown,
            excluded=self.excluded + other.excluded,
            minutes=self.minutes + other.minutes,
            coarse=self.coarse or other.coarse,
        )

    def __sub__(self, part: SpanCounts) -> SpanCounts:
        """Subtract a *part* of the span, such as planned maintenance."""
        return SpanCounts(
            good=self.good - part.good,
            total=self.total - part.total,
            unknown=self.unknown - part.unknown,
            excluded=self.excluded,
            minutes=self.minutes - part.minutes,
            coarse=self.coarse or part.coarse,
        )


class MinuteCounts(NamedTuple):
    """Events of the minute that starts at `at` (epoch ms); minutes without a sample are omitted.

    In steps of five minutes and in hourly history, one covers `length` ms, of which `minutes` have
    a sample.
    """

    at: int
    good: float
    total: float
    unknown: float
    length: int = MINUTE_MS
    minutes: int = 1


_AT: Final = attrgetter("at")


def whole_minute(at: int) -> int:
    """*at* (epoch ms), rounded down to the minute."""
    return at - at % MINUTE_MS


def counted(minutes: Sequence[MinuteCounts], span: Span) -> SpanCounts:
    """The sum of the *minutes* (ascending) that start in *span*."""
    first, end = (bisect_left(minutes, at, key=_AT) for at in (span.start, span.end))
    within = minutes[first:end]
    return SpanCounts(
        good=sum(map(attrgetter("good"), within)),
        total=sum(map(attrgetter("total"), within)),
        unknown=sum(map(attrgetter("unknown"), within)),
        minutes=sum(map(attrgetter("minutes"), within)),
    )
