"""Increases of the counters of an exporter's replicas.

Each replica counts all events, so an indicator's events are the mean over its replicas. Increases
between scrapes are averaged, not counters: a replica that is added or removed then adds no events.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.reporting.step_counts import STEP_MS, Tally
from mm2slo_report.recording.tally_arithmetic import has_fallen, mean, minus, times
from mm2slo_store import CounterState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.reporting.step_counts import Indicator
    from mm2slo_report.recording.exposition import Page


class _Increase(NamedTuple):
    """The increase of a replica's counters after `since`."""

    since: int
    tally: Tally


class ReplicaCounters:
    """The counters of each replica as last scraped, from the stored *states* on.

    A state is kept while the page of its replica lacks the indicator.
    """

    def __init__(self, states: Iterable[CounterState] = ()) -> None:
        self._states: defaultdict[str, dict[Indicator, CounterState]] = defaultdict(dict)
        self._scraped_at: dict[str, int] = {}
        self._scraped_here: set[str] = set()
        self._counted_until: dict[Indicator, int] = {}
        for state in states:
            self._states[state.replica][state.indicator] = state
            self._scraped_at[state.replica] = max(
                state.at, self._scraped_at.get(state.replica, state.at)
            )
            self._counted_until[state.indicator] = max(
                state.at, self._counted_until.get(state.indicator, state.at)
            )

    @property
    def newest_scrape(self) -> int:
        """When the last page was scraped; further rounds must be later."""
        return max(self._scraped_at.values(), default=0)

    @property
    def states(self) -> tuple[CounterState, ...]:
        """The counters of all replicas that were scraped since the start."""
        return tuple(
            each
            for replica in sorted(self._scraped_here)
            for each in self._states[replica].values()
        )

    def add(self, at: int, pages: Mapping[str, Page]) -> Mapping[Indicator, Tally]:
        """Add a scrape round at *at* (epoch ms) of pages by replica; returns what was counted.

        An indicator is measured if a replica was scraped in the five minutes before. Raises
        ValueError if *at* is not after the previous round.
        """
        if at <= self.newest_scrape:
            raise ValueError(
                f"scrape round at {at} is not after the previous one at {self.newest_scrape}"
            )
        found: dict[Indicator, list[_Increase]] = {}
        for replica, page in pages.items():
            for indicator, tally in page.tallies.items():
                increase = self._increase(replica, indicator, tally, page.started, at)
                increases = found.setdefault(indicator, [])
                if increase is not None:
                    increases.append(increase)
                self._states[replica][indicator] = CounterState(
                    replica, indicator, at, tally, page.started
                )
            self._scraped_at[replica] = at
            self._scraped_here.add(replica)
        counted = {
            indicator: _mean_increase(increases, self._counted_until.get(indicator), at)
            for indicator, increases in found.items()
            if increases
        }
        # New replicas alone do not show what was counted until now.
        new = found.keys() - self._counted_until.keys()
        self._counted_until |= dict.fromkeys(counted.keys() | new, at)
        return counted

    def _increase(
        self, replica: str, indicator: Indicator, now: Tally, started: int | None, at: int
    ) -> _Increase | None:
        """None for a counter whose start is unknown, or that was last scraped too long ago."""
        before = self._states[replica].get(indicator)
        scraped_at = self._scraped_at.get(replica) if before is None else before.at
        if scraped_at is None or at - scraped_at > STEP_MS:
            return None
        if before is not None:
            restarted = None not in (started, before.started) and started != before.started
            restarted |= has_fallen(before.raw, now)
            tally = now if restarted else minus(now, before.raw)
        else:
            # The replica was scraped before it had this indicator, so it started at zero; unless a
            # recorder of an earlier version scraped it, which may not have known the indicator.
            restarted = started is not None and started > scraped_at
            if not restarted and replica not in self._scraped_here:
                return None
            tally = now
        if not restarted:
            return _Increase(scraped_at, tally)
        # What it counted before the restart is lost, so it does not cover the time since then.
        since = at if started is None else max(scraped_at + 1, started)
        return _Increase(min(since, at), tally)


def _mean_increase(increases: Sequence[_Increase], counted_until: int | None, at: int) -> Tally:
    """The mean increase from *counted_until*, where known, to *at*.

    A replica that was unreachable for a while includes events that others have counted; one that
    is new or has restarted lacks events. Both are left out if another replica has samples for the
    whole time. If none has, the former counts in proportion to time, and the latter without it.
    """
    if counted_until is not None:
        whole = [each.tally for each in increases if each.since == counted_until]
        longer = [
            times(each.tally, (at - counted_until) / (at - each.since))
            for each in increases
            if each.since < counted_until
        ]
        if whole or longer:
            return mean(whole or longer)
    started = min(each.since for each in increases)
    return mean([each.tally for each in increases if each.since == started])
