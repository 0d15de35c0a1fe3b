"""What was counted, by whole minutes: the common ground of every source of history.

A source joins the resets of a counter, so that what it counted is a difference of two values.
Events belong to the minute in which they were first seen; those of a gap, in which nothing was
seen, to the minute after it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.objectives.exclusion import Span
    from mm2slo_core.sli import SliKey
    from mm2slo_core.topology import Flow

MINUTE_MS: Final = 60_000


class Indicator(NamedTuple):
    """One indicator of one flow."""

    flow: Flow
    key: SliKey


class Tally(NamedTuple):
    """Events of one indicator since its history started: totals that no reset takes back."""

    good: float = 0.0
    total: float = 0.0
    unknown: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanCounts:
    """Events first seen within a span of whole minutes, on average over an exporter's replicas.

    `minutes` is how many of the span's minutes hold at least one sample. `coarse` says that the
    history is kept by the hour there: events of the edges may belong to a neighbour.
    """

    good: float = 0.0
    total: float = 0.0
    unknown: float = 0.0
    minutes: int = 0
    coarse: bool = False

    @property
    def bad(self) -> float:
        """Settled events that were not good."""
        return self.total - self.good

    def __add__(self, other: SpanCounts) -> SpanCounts:
        return SpanCounts(
            good=self.good + other.good,
            total=self.total + other.total,
            unknown=self.unknown + other.unknown,
            minutes=self.minutes + other.minutes,
            coarse=self.coarse or other.coarse,
        )

    def __sub__(self, part: SpanCounts) -> SpanCounts:
        """Without a *part* of the span, such as planned maintenance."""
        return SpanCounts(
            good=self.good - part.good,
            total=self.total - part.total,
            unknown=self.unknown - part.unknown,
            minutes=self.minutes - part.minutes,
            coarse=self.coarse or part.coarse,
        )


class MinuteCounts(NamedTuple):
    """Events of the minute that starts at `at` (epoch ms); a minute without a sample has none.

    Where history is kept by the hour, one stands for all the minutes of `length` ms, of which
    `minutes` hold a sample.
    """

    at: int
    good: float
    total: float
    unknown: float
    length: int = MINUTE_MS
    minutes: int = 1


_AT: Final = attrgetter("at")


def whole_minute(at: int) -> int:
    """*at* (epoch ms), rounded down: the instant that a report speaks of."""
    return at - at % MINUTE_MS


def counted(minutes: Sequence[MinuteCounts], span: Span) -> SpanCounts:
    """The sum of those *minutes* (ascending) that start in *span*."""
    first, end = (bisect_left(minutes, at, key=_AT) for at in (span.start, span.end))
    within = minutes[first:end]
    return SpanCounts(
        good=sum(map(attrgetter("good"), within)),
        total=sum(map(attrgetter("total"), within)),
        unknown=sum(map(attrgetter("unknown"), within)),
        minutes=sum(map(attrgetter("minutes"), within)),
    )
