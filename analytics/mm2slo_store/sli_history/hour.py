"""One hour of one indicator: the row of `sli_hours`, and what can be done with it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.reporting.minute_counts import MINUTE_MS, MinuteCounts, Tally
from mm2slo_store.sli_history.packing import (
    growth,
    growths_of,
    packed,
    total_after,
    totals_after,
)
from mm2slo_store.sli_history.rows import TallyAt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_core.objectives.exclusion import Span

HOUR_MS: Final = 3_600_000


class Hour(NamedTuple):
    """Totals as the hour started, and what each of its minutes with a sample added.

    `hour` counts from the epoch; `minutes` has bit m set where minute m holds a sample, and
    `minutes_before` says how many there were in all hours before. A folded hour has one growth,
    that of all its minutes together.
    """

    hour: int
    indicator: int
    good: float
    total: float
    unknown: float
    minutes_before: int
    minutes: int
    folded: bool
    growths: bytes

    @property
    def base(self) -> Tally:
        """The totals as the hour started."""
        return Tally(self.good, self.total, self.unknown)

    @property
    def start(self) -> int:
        """Epoch ms."""
        return self.hour * HOUR_MS

    @property
    def samples(self) -> int:
        """How many growths are kept."""
        return 1 if self.folded else self.minutes.bit_count()

    @property
    def first_at(self) -> int:
        """The first minute with a sample, epoch ms."""
        return self.start + (self.minutes & -self.minutes).bit_length() * MINUTE_MS - MINUTE_MS


def place(at: int) -> tuple[int, int]:
    """The hour of *at* (epoch ms), and the minute in it."""
    hour, within = divmod(at, HOUR_MS)
    return hour, within // MINUTE_MS


def after(newest: Hour | None, hour: int, indicator: int) -> Hour:
    """The *hour* as it starts, *newest* being the one before it; None: the first."""
    tally, minutes, _ = at_end(newest) if newest is not None else TallyAt(Tally(), 0)
    return Hour(hour, indicator, *tally, minutes, 0, folded=False, growths=b"")


def with_minute(known: Hour, minute: int, tally: Tally) -> Hour | None:
    """The hour with the totals at the end of *minute*, in place of what it said of that minute.

    None for a minute before its newest, which is not to be changed. A total below the one before
    it stays as that was: counters never go back.
    """
    newest = known.minutes.bit_length() - 1
    if known.folded or minute < newest:
        return None
    totals = totals_after(known.growths, known.base, known.samples) if known.minutes else []
    if minute == newest:
        totals.pop()
    before = totals[-1] if totals else known.base
    totals.append(Tally(*map(max, before, tally)))
    return known._replace(minutes=known.minutes | 1 << minute, growths=packed(known.base, totals))


def last_minute(known: Hour, before: int) -> int | None:
    """The end of the last minute with a sample until *before*."""
    bits = known.minutes & (1 << min(max((before - known.start) // MINUTE_MS, 0), 60)) - 1
    return known.start + bits.bit_length() * MINUTE_MS if bits else None


def at_end(known: Hour) -> TallyAt:
    """The totals after all of the hour."""
    samples = known.samples
    tally = total_after(known.growths, known.base, samples, samples)
    return TallyAt(tally, known.minutes_before + known.minutes.bit_count())


def at_minute(known: Hour, minute: int) -> TallyAt:
    """The totals as *minute* starts."""
    if known.folded or minute == 0:
        return TallyAt(known.base, known.minutes_before, known.folded and minute > 0)
    count = (known.minutes & (1 << minute) - 1).bit_count()
    tally = total_after(known.growths, known.base, known.samples, count)
    return TallyAt(tally, known.minutes_before + count)


def fold(known: Hour) -> Hour:
    """The hour without its minutes' detail."""
    growths = packed(known.base, [at_end(known).tally])
    return known._replace(folded=True, growths=growths)


def minutes_within(known: Hour, span: Span) -> Iterable[MinuteCounts]:
    """The minutes with a sample in *span*; a folded hour is one, unless it ends after *span*."""
    if known.folded:
        return _folded_within(known, span)
    starts = (known.start + bit * MINUTE_MS for bit in range(60) if known.minutes >> bit & 1)
    found = map(MinuteCounts, starts, *growths_of(known.growths, known.base, known.samples))
    if span.start <= known.start and known.start + HOUR_MS <= span.end:
        return found
    return (each for each in found if span.start <= each.at < span.end)


def _folded_within(known: Hour, span: Span) -> Iterator[MinuteCounts]:
    if known.start + HOUR_MS <= span.end:
        added = growth(known.base, at_end(known).tally)
        start = max(known.start, span.start)
        length = known.start + HOUR_MS - start
        yield MinuteCounts(start, *added, length, known.minutes.bit_count())
