"""The mean over an exporter's replicas, minute by minute, and its sum from any minute to another.

As the recorder pools its rounds of scraping: averaged is what the replicas counted since the last
minute that any of them was seen in. One that was away brings events of a time that the others
have counted; it is left out in its first minute where another was there throughout. Where none
was, its share by time is taken.

Between two minutes in which the set of replicas changes, the sum is a difference of means. So a
span costs a few values, however long it is.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_core.reporting.minute_counts import Tally
from mm2slo_core.reporting.tally_arithmetic import mean, minus, plus, times

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_report.sources.prometheus.series import Series

NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Minutes in which the same replicas have samples, from the bit `first` on.

    `before` is the last bit before it that holds a sample of any, None: no such bit. `last` is
    each replica's own last one.
    """

    first: int
    before: int | None
    last: Mapping[Series, int]
    replicas: tuple[Series, ...]


def stretches(presence: Mapping[Series, int]) -> tuple[Stretch, ...]:
    """Where the set of those present changes, by the minutes of each (bits)."""
    union = 0
    for bits in presence.values():
        union |= bits
    return tuple(
        Stretch(
            first=first,
            before=below(union, first),
            last={
                each: found
                for each, bits in presence.items()
                if (found := below(bits, first)) is not None
            },
            replicas=tuple(each for each, bits in presence.items() if bits >> first & 1),
        )
        for first in _changes(presence, union)
    )


def below(bits: int, place: int) -> int | None:
    """The highest bit below *place*; None: no such bit."""
    lower = bits & ((1 << place) - 1)
    return lower.bit_length() - 1 if lower else None


@dataclass(slots=True)
class Pooled:
    """The total of one indicator's replicas. `joined` gives a counter without its resets.

    `joined(series, bit)` is the value at the end of that minute, which holds a sample of it.
    """

    presence: Mapping[Series, int]
    stretches: Sequence[Stretch]
    joined: Callable[[Series, int], Tally]
    _totals: list[Tally] = field(default_factory=list)
    """At the end of the first minute of each stretch."""

    def __post_init__(self) -> None:
        total = NOTHING
        for place, stretch in enumerate(self.stretches):
            if place and stretch.before is not None:
                total = self._after(place - 1, stretch.before)
            self._totals.append(plus(total, self._first(stretch)))

    def until(self, bit: int) -> Tally:
        """The total of all minutes below *bit*."""
        place = bisect_right(self.stretches, bit - 1, key=lambda each: each.first) - 1
        if place < 0:
            return NOTHING
        members = self.stretches[place].replicas
        last = below(self.presence[members[0]], bit)
        assert last is not None, "a stretch starts with a minute of all its replicas"  # noqa: S101
        return self._after(place, last)

    def _after(self, place: int, last: int) -> Tally:
        """The total at the end of the minute *last*, in a stretch."""
        stretch, total = self.stretches[place], self._totals[place]
        if last == stretch.first:
            return total
        return plus(
            total,
            mean(
                [
                    minus(self.joined(each, last), self.joined(each, stretch.first))
                    for each in stretch.replicas
                ]
            ),
        )

    def _first(self, stretch: Stretch) -> Tally:
        """What is counted in the first minute."""
        grown: list[tuple[int | None, Tally]] = []
        for each in stretch.replicas:
            last = stretch.last.get(each)
            before = NOTHING if last is None else self.joined(each, last)
            grown.append((last, minus(self.joined(each, stretch.first), before)))
        fresh = [tally for last, tally in grown if last == stretch.before]
        if not fresh:
            fresh = [
                times(tally, (stretch.first - stretch.before) / (stretch.first - last))
                for last, tally in grown
                if last is not None and stretch.before is not None
            ]
        if not fresh:
            # New ones alone, which show what they counted in their first minute.
            fresh = [tally for _, tally in grown]
        return mean(fresh)


def _changes(presence: Mapping[Series, int], union: int) -> list[int]:
    """The minutes of *union* in which the set differs from that of the minute before it there."""
    if not union:
        return []
    changes = 0
    for bits in presence.values():
        absent = union & ~bits
        changes |= _starts(bits, absent) | _starts(absent, bits)
    changes |= union & -union
    found = []
    while changes:
        lowest = changes & -changes
        found.append(lowest.bit_length() - 1)
        changes ^= lowest
    return found


def _starts(bits: int, others: int) -> int:
    """The bits of *bits* whose next lower neighbour, in both together, is one of *others*.

    Minutes in neither lie between: a carry runs over them.
    """
    if not bits or not others:
        return 0
    whole = bits | others
    gaps = ((1 << whole.bit_length()) - 1) & ~whole
    # Added just above one of `others`, a carry runs over the gaps to the next minute of either.
    return (gaps + (others << 1)) & bits
