"""Rounds of scraping, gathered into whole minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.reporting.history import MINUTE_MS, whole_minute

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.reporting.history import Indicator, Tally
    from mm2slo_report.recording.exposition import Page
    from mm2slo_report.recording.pooling import Pool
    from mm2slo_store.sli_history.rows import CounterState


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What to store of the minute that starts at `at` (epoch ms): how all stood at its end."""

    at: int
    tallies: Mapping[Indicator, Tally]
    """Of `seen`: only what has a sample can have grown."""
    seen: frozenset[Indicator]
    states: tuple[CounterState, ...]
    """Of the replicas that were read in it, as of its last round."""


class Minutes:
    """The running minute of *pool*, from its last round on.

    What is read when the clock went back belongs to the newest minute, which is given again: the
    store puts it in place of what it has.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._running: int | None = None
        self._seen: set[Indicator] = set()
        self._replicas: set[str] = set()

    @property
    def running(self) -> int | None:
        """The minute that is being gathered; None: nothing was read since the last was given."""
        return self._running

    def add(self, at: int, pages: Mapping[str, Page]) -> None:
        """Count a round of scraping, after `ended` was asked for the same time."""
        if not pages:
            return
        newest = self._pool.newest
        moment = at if newest is None else max(at, newest + 1)
        self._seen |= self._pool.add(moment, pages)
        self._replicas |= pages.keys()
        if self._running is None:
            self._running = whole_minute(moment)

    def ended(self, now: int) -> Minute | None:
        """The running minute if it has ended by *now*; it is given once."""
        if self._running is None or now < self._running + MINUTE_MS:
            return None
        return self.cut()

    def cut(self) -> Minute | None:
        """The running minute as it stands; what is added to it later gives it once more."""
        if self._running is None:
            return None
        minute = Minute(
            at=self._running,
            tallies={each: self._pool.totals[each] for each in self._seen},
            seen=frozenset(self._seen),
            states=self._pool.states(sorted(self._replicas)),
        )
        self._running = None
        self._seen.clear()
        self._replicas.clear()
        return minute
