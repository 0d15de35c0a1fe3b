"""Evaluates observations and publishes the result, in one thread."""

from __future__ import annotations

import gc
import logging
import threading
import time
from typing import TYPE_CHECKING

from mm2slo_exporter.service.memory_release import return_free_memory
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread

if TYPE_CHECKING:
    from mm2slo_exporter.collection_health import Health
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.service.flow_manager import FlowManager
    from mm2slo_exporter.service.flow_runner import FlowRunner
    from mm2slo_exporter.service.round_queue import RoundQueue
    from mm2slo_exporter.service.snapshot_publisher import Publisher

logger = logging.getLogger(__name__)

_TICK_SECONDS = 0.2
_STOP_SECONDS = 30.0
_TRIM_SECONDS = 60.0
"""Not after each cycle: allocating the memory again costs page faults."""


class Evaluator:
    """Evaluates queued observations in one thread, then renders once."""

    def __init__(
        self, rounds: RoundQueue, flows: FlowManager, publisher: Publisher, health: Health
    ) -> None:
        self._rounds = rounds
        self._flows = flows
        self._publisher = publisher
        self._trim_at = 0.0
        self._health = health
        self._stopping = threading.Event()
        self._thread = SupervisedThread(
            Loop.EVALUATE, "", self._run, self._stopping, health.record_loop_failure
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after the current cycle."""
        self._stopping.set()
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.run_cycle(_TICK_SECONDS)

    def run_cycle(self, timeout: float) -> None:
        """Evaluate queued observations; waits up to *timeout* seconds for the first."""
        self._flows.take_canary_events()
        if (scraped := self._publisher.take_scraped()) is not None:
            self._flows.send_ledger_states(scraped)
        observations = self._rounds.take(timeout)
        if not observations:
            return
        started = time.perf_counter()
        for runner, seen in observations:
            self._evaluate(runner, seen)
        self._publisher.publish()
        self._publisher.cycle_seconds = time.perf_counter() - started
        if time.monotonic() >= self._trim_at:
            self._trim_at = time.monotonic() + _TRIM_SECONDS
            gc.collect(1)
            return_free_memory()

    def _evaluate(self, runner: FlowRunner, seen: Observation) -> None:
        """Evaluate one observation. A failure does not affect other flows."""
        try:
            runner.evaluate(seen)
        except Exception:
            runner.report = runner.report.not_evaluated()
            self._health.record_loop_failure(Loop.EVALUATE)
            logger.exception(
                "evaluating flow %s failed; its state is unknown until it succeeds; "
                "report this bug with the traceback below",
                runner.flow.label,
                extra={"flow": runner.flow.label},
            )
