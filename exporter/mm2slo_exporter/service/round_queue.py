"""Passes observations from the reading threads to the evaluating thread."""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.service.flow_runner import FlowRunner


class RoundQueue:
    """Holds the newest observation of each flow: evaluating slowly must not delay it further."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[FlowRunner, Observation] = {}
        self._skipped: Counter[Flow] = Counter()

    def put(self, runner: FlowRunner, seen: Observation) -> bool:
        """Add one observation, in place of one that still waits; True if there was one."""
        with self._changed:
            before = self._waiting.get(runner)
            if before is not None:
                seen = seen.in_place_of(before)
                self._skipped[runner.flow.flow] += 1
            self._waiting[runner] = seen
            self._changed.notify()
        return before is not None

    def take(self, timeout: float) -> list[tuple[FlowRunner, Observation]]:
        """All waiting observations; waits up to *timeout* seconds for the first."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._waiting), timeout)
            found, self._waiting = list(self._waiting.items()), {}
        return found

    def skipped(self, flow: Flow) -> int:
        """How many rounds of *flow* were not evaluated."""
        return self._skipped[flow]
