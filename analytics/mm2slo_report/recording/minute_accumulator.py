"""Accumulates scrape rounds into whole minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.reporting.minute_counts import MINUTE_MS, whole_minute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.reporting.minute_counts import Indicator, Tally
    from mm2slo_report.recording.exposition import Page
    from mm2slo_report.recording.replica_totals import ReplicaTotals
    from mm2slo_store.sli_history.rows import CounterState


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMinute:
    """The totals at the end of the minute that starts at `at` (epoch ms)."""

    at: int
    tallies: Mapping[Indicator, Tally]
    """Totals of the indicators in `seen`."""
    seen: frozenset[Indicator]
    states: tuple[CounterState, ...]
    """Counters of the replicas scraped in the minute, as of its last round."""


class MinuteAccumulator:
    """Accumulates the current minute over *totals*.

    If the clock is set back, samples belong to the newest minute, which is then returned again:
    the store replaces what it has of it.
    """

    def __init__(self, totals: ReplicaTotals) -> None:
        self._totals = totals
        self._current: int | None = None
        self._seen: set[Indicator] = set()
        self._replicas: set[str] = set()

    @property
    def current(self) -> int | None:
        """The current minute; None: no sample since the last one was returned."""
        return self._current

    def add(self, at: int, pages: Mapping[str, Page]) -> None:
        """Add a scrape round; call `take_ended` for the same time first."""
        if not pages:
            return
        newest = self._totals.newest_scrape
        moment = at if newest is None else max(at, newest + 1)
        self._seen |= self._totals.add(moment, pages)
        self._replicas |= pages.keys()
        if self._current is None:
            self._current = whole_minute(moment)

    def take_ended(self, now: int) -> RecordedMinute | None:
        """The current minute if it has ended by *now*; returned once."""
        if self._current is None or now < self._current + MINUTE_MS:
            return None
        return self.take()

    def take(self) -> RecordedMinute | None:
        """The current minute before its end; samples added later return it again."""
        if self._current is None:
            return None
        minute = RecordedMinute(
            at=self._current,
            tallies={each: self._totals.tallies[each] for each in self._seen},
            seen=frozenset(self._seen),
            states=self._totals.states(sorted(self._replicas)),
        )
        self._current = None
        self._seen.clear()
        self._replicas.clear()
        return minute
