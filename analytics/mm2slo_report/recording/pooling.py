"""From the counters of an exporter's replicas to totals that never fall and never jump.

Each replica counts for itself, so an indicator's events are the mean over its replicas. Averaged
is what was counted between two rounds of scraping, never a counter: one more replica, or one less,
then changes neither what is stored nor what comes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.reporting.history import Tally
from mm2slo_core.reporting.tallies import mean, plus, times
from mm2slo_report.recording.counting import counted
from mm2slo_store.sli_history.rows import CounterState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.reporting.history import Indicator
    from mm2slo_report.recording.exposition import Page


class _Growth(NamedTuple):
    """What a replica counted after `since`."""

    since: int
    tally: Tally


class Pool:
    """Totals since the first sample of each indicator, and what is needed to go on with them.

    Begins with the *totals* and the counters' *states* of the rounds before. A state is kept also
    while the page of its replica lacks the indicator.
    """

    def __init__(
        self, totals: Mapping[Indicator, Tally] | None = None, states: Iterable[CounterState] = ()
    ) -> None:
        self.totals = dict(totals or {})
        self._states: defaultdict[str, dict[Indicator, CounterState]] = defaultdict(dict)
        self._read: dict[str, int] = {}
        self._read_here: set[str] = set()
        self._done: dict[Indicator, int] = {}
        for state in states:
            self._states[state.replica][state.indicator] = state
            self._read[state.replica] = max(state.at, self._read.get(state.replica, state.at))
            self._done[state.indicator] = max(state.at, self._done.get(state.indicator, state.at))

    @property
    def newest(self) -> int | None:
        """When the last page was read; rounds must be later."""
        return max(self._read.values(), default=None)

    def states(self, replicas: Iterable[str]) -> tuple[CounterState, ...]:
        """The counters of *replicas* as they were last read."""
        return tuple(each for replica in replicas for each in self._states[replica].values())

    def add(self, at: int, pages: Mapping[str, Page]) -> frozenset[Indicator]:
        """Count a round of scraping at *at* (epoch ms): pages by replica.

        Gives the indicators that are in them. Raises ValueError when *at* is not after the round
        before.
        """
        if self.newest is not None and at <= self.newest:
            raise ValueError(f"a round at {at} does not follow that at {self.newest}")
        found: defaultdict[Indicator, list[_Growth]] = defaultdict(list)
        for replica, page in pages.items():
            for indicator, tally in page.tallies.items():
                growth = self._growth(replica, indicator, tally, page.started)
                found[indicator].extend(() if growth is None else (growth,))
                self._states[replica][indicator] = CounterState(
                    replica, indicator, at, tally, page.started
                )
            self._read[replica] = at
            self._read_here.add(replica)
        for indicator, growths in found.items():
            new = _pooled(growths, self._done.get(indicator), at)
            self.totals[indicator] = plus(self.totals.get(indicator, Tally()), new)
            # Replicas that are new themselves leave it open what was counted until now.
            if growths or indicator not in self._done:
                self._done[indicator] = at
        return frozenset(found)

    def _growth(
        self, replica: str, indicator: Indicator, now: Tally, started: int | None
    ) -> _Growth | None:
        """None for a counter whose start is not known."""
        before = self._states[replica].get(indicator)
        if before is not None:
            anew = None not in (started, before.started) and started != before.started
            return _Growth(before.at, counted(before.raw, now, anew=anew))
        read = self._read.get(replica)
        if read is None:
            return None
        # The replica was read before it had this indicator, which therefore started at zero: unless
        # it was read by a recorder of an earlier version, which may not have known the indicator.
        anew = started is not None and started > read
        return _Growth(read, now) if anew or replica in self._read_here else None


def _pooled(growths: Sequence[_Growth], done: int | None, at: int) -> Tally:
    """The mean of what is new at *at*, events up to *done* being counted already.

    A replica that was away for a while brings events of a time that others have counted, one that
    is new lacks events that others have not. Both are left out where another was there throughout;
    where none was, of the former a share by time is taken.
    """
    if not growths:
        return Tally()
    if done is not None and all(each.since < done for each in growths):
        return mean([times(each.tally, (at - done) / (at - each.since)) for each in growths])
    started = min(each.since for each in growths if done is None or each.since >= done)
    return mean([each.tally for each in growths if each.since == started])
