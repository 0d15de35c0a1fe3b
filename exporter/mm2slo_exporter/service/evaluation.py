"""The thread that evaluates what was read, and publishes it."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING

from mm2slo_exporter.service.memory import return_free_memory

if TYPE_CHECKING:
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.service.flows import Flows
    from mm2slo_exporter.service.publishing import Publisher
    from mm2slo_exporter.service.runner import FlowRunner

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.2
_TIDY_SECONDS = 60.0
"""After each cycle would be dear: what the next one takes again costs page faults."""


class Rounds:
    """Rounds on their way from the threads that read to the one that evaluates."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[FlowRunner, Observation]] = queue.SimpleQueue()

    def put(self, runner: FlowRunner, seen: Observation) -> None:
        """Add one round; never waits."""
        self._queue.put((runner, seen))

    def take(self, timeout: float) -> list[tuple[FlowRunner, Observation]]:
        """All rounds that wait, in order; waits up to *timeout* seconds for the first."""
        found: list[tuple[FlowRunner, Observation]] = []
        try:
            found.append(self._queue.get(timeout=timeout))
            while True:
                found.append(self._queue.get_nowait())
        except queue.Empty:
            return found


class Evaluation:
    """Evaluates rounds in one thread, and renders once for all that waited."""

    def __init__(self, rounds: Rounds, flows: Flows, publisher: Publisher) -> None:
        self._rounds = rounds
        self._flows = flows
        self._publisher = publisher
        self._tidy_at = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="evaluate")

    def start(self) -> None:
        """Begin to evaluate; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the cycle under way."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.cycle(_TICK_SECONDS)

    def cycle(self, patience: float) -> None:
        """Take what is there; waits up to *patience* seconds for the first round."""
        self._flows.take_canary_events()
        waiting = self._rounds.take(patience)
        if not waiting:
            return
        started = time.perf_counter()
        for runner, seen in waiting:
            _evaluate(runner, seen)
        self._flows.hint_canaries()
        self._publisher.publish()
        self._publisher.cycle_seconds = time.perf_counter() - started
        if time.monotonic() >= self._tidy_at:
            self._tidy_at = time.monotonic() + _TIDY_SECONDS
            return_free_memory()


def _evaluate(runner: FlowRunner, seen: Observation) -> None:
    """Evaluate one round. A flow that cannot be judged must neither look well nor stop others."""
    try:
        runner.evaluate(seen)
    except Exception:
        runner.report = None
        logger.exception(
            "flow %s cannot be evaluated: its series are left out until it can; "
            "report this with the text below",
            runner.flow.label,
            extra={"flow": runner.flow.label},
        )
