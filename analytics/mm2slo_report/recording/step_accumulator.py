"""Accumulates scrape rounds into steps of five minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.reporting.step_counts import STEP_MS, Tally
from mm2slo_report.recording.replica_counters import ReplicaCounters
from mm2slo_report.recording.tally_arithmetic import plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.reporting.step_counts import Indicator
    from mm2slo_report.recording.exposition import Page
    from mm2slo_store import CounterState

_DIGITS = 6
"""Counts are kept to a millionth of an event: averages over three replicas add up to whole ones."""


class RecordedStep(NamedTuple):
    """The counts of the step that ends at `end` (epoch ms), or of the part of it so far."""

    end: int
    counts: Mapping[Indicator, Tally]
    states: tuple[CounterState, ...]
    """Counters of the replicas, as of the last round."""


class StepAccumulator:
    """Accumulates the current step, from the stored *states* and *counts* of the step at *end* on.

    If the clock is set back, events belong to the newest step.
    """

    def __init__(
        self,
        states: Iterable[CounterState] = (),
        end: int = 0,
        counts: Mapping[Indicator, Tally] | None = None,
    ) -> None:
        self._replicas = ReplicaCounters(states)
        self.end = end
        self._counts = dict(counts or {})
        self._is_taken = True

    def add(self, at: int, pages: Mapping[str, Page]) -> RecordedStep | None:
        """Add a scrape round at *at* (epoch ms); returns the step that it ended, as `take` does."""
        if not pages:
            return None
        at = max(at, self._replicas.newest_scrape + 1)
        end = at - at % STEP_MS + STEP_MS
        ended = None
        if end > self.end:
            ended = self.take()
            self.end = end
            self._counts.clear()
        for indicator, increase in self._replicas.add(at, pages).items():
            self._counts[indicator] = plus(self._counts.get(indicator, Tally()), increase)
        self._is_taken = False
        return ended

    def take(self) -> RecordedStep | None:
        """The current step so far; None if nothing was added since it was taken."""
        if self._is_taken:
            return None
        self._is_taken = True
        counts = {
            each: Tally(*(round(count, _DIGITS) for count in tally))
            for each, tally in self._counts.items()
        }
        return RecordedStep(self.end, counts, self._replicas.states)
