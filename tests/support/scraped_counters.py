"""Counters of an exporter's replicas as they are scraped, and the events they counted.

The expected count is by brute force, sample by sample.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from minute_history import Minutes

from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator, Tally, whole_minute

PER_SCRAPE: Final = 15
"""Events between two scrapes, as of canaries: extrapolation is exact at an even rate."""


@dataclass
class Replica:
    """One process of the exporter, with its successful scrapes."""

    instance: str
    pages: dict[int, dict[Indicator, Tally]] = field(default_factory=dict)
    started: dict[int, int] = field(default_factory=dict)
    """Process start time (epoch ms) by scrape."""

    def run(
        self,
        indicators: Sequence[Indicator],
        scrapes: Iterable[int],
        *,
        seed: int = 1,
        base: float = 0.0,
    ) -> None:
        """Run a process that starts with *base* events of each kind; *scrapes* are epoch ms."""
        draw = random.Random(f"{self.instance}{seed}")
        values = dict.fromkeys(indicators, Tally(base, base, base))
        started = None
        for at in scrapes:
            started = at if started is None else started
            self.started.setdefault(at, started)
            for each, (good, total, unknown) in values.items():
                events = PER_SCRAPE
                bad = int(draw.random() < 0.05)
                values[each] = Tally(
                    good + events - bad, total + events, unknown + (draw.random() < 0.02)
                )
            self.pages.setdefault(at, {}).update(values)

    def drop(self, start: int, end: int, indicators: Iterable[Indicator] | None = None) -> None:
        """Drop the scrapes of [start, end), or *indicators* from their pages."""
        dropped = None if indicators is None else set(indicators)
        for at in [each for each in self.pages if start <= each < end]:
            if dropped is None:
                del self.pages[at]
            else:
                self.pages[at] = {
                    one: tally for one, tally in self.pages[at].items() if one not in dropped
                }


def brute_force(replicas: Sequence[Replica], indicator: Indicator) -> Minutes:
    """The events of each minute, averaged over the replicas with samples for the whole time."""
    grown = [dict(_growths(each, indicator)) for each in replicas]
    found = Minutes()
    last: dict[int, int] = {}
    counted: int | None = None
    for minute in sorted({at for each in grown for at in each}):
        present = [place for place, each in enumerate(grown) if minute in each]
        fresh = [place for place in present if last.get(place) == counted]
        shares = dict.fromkeys(fresh, 1.0)
        if not fresh and counted is not None:
            shares = {
                place: (minute - counted) / (minute - last[place])
                for place in present
                if place in last
            } or dict.fromkeys(present, 1.0)
        sums = [
            sum(grown[place][minute][column] * share for place, share in shares.items())
            / len(shares)
            for column in range(3)
        ]
        found.counted[minute] = (sums[0], sums[1], sums[2])
        last |= dict.fromkeys(present, minute)
        counted = minute
    return found


def _growths(replica: Replica, indicator: Indicator) -> Iterator[tuple[int, Tally]]:
    """Increases since the previous sample, by minute with a sample."""
    before: Tally | None = None
    process_start: int | None = None
    started = min(replica.pages, default=0) - MINUTE_MS
    sums: dict[int, list[float]] = {}
    first_page = whole_minute(started + MINUTE_MS)
    for at, page in sorted(replica.pages.items()):
        if indicator not in page:
            continue
        now, minute = page[indicator], whole_minute(at)
        if before is None:
            # Earlier pages lacked it, so it started at zero.
            before = now if minute == first_page else Tally()
        restarted = process_start is not None and replica.started.get(at) not in {
            None,
            process_start,
        }
        process_start = replica.started.get(at)
        if restarted or any(new < old for new, old in zip(now, before, strict=True)):
            before = Tally()
        grown = sums.setdefault(minute, [0.0, 0.0, 0.0])
        for column in range(3):
            grown[column] += now[column] - before[column]
        before = now
    for minute, (good, total, unknown) in sums.items():
        yield minute, Tally(good, total, unknown)
