"""Supervises the canary process and collects its events.

Canaries run in a separate process because arrival times must not depend on the interpreter lock
while the exporter converts tens of thousands of offsets.
"""

import contextlib
import logging
import multiprocessing
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection

from mm2slo_exporter.canary.canary_messages import CanarySpec, EventBuffer, LedgerState
from mm2slo_exporter.canary.canary_process import run_canary_process
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread

logger = logging.getLogger(__name__)
_JOIN_SECONDS = 10.0


class CanarySupervisor:
    """Starts the canary process, restarts it when it ends, and collects its events.

    *on_start* is called before each start. *serve* runs in the process until the pipe is closed.
    """

    def __init__(
        self,
        specs: Sequence[CanarySpec],
        *,
        on_failure: Callable[[Loop], None],
        on_start: Callable[[], None] = lambda: None,
        serve: Callable[[Connection, Sequence[CanarySpec]], None] = run_canary_process,
        restart_seconds: float = 2.0,
    ) -> None:
        self._specs = tuple(specs)
        self._on_start = on_start
        self._serve = serve
        self._restart_seconds = restart_seconds
        self.events = EventBuffer()
        """What the process has sent."""
        self._stopping = threading.Event()
        self._on_failure = on_failure
        self._thread = SupervisedThread(
            Loop.CANARY, "", self._supervise, self._stopping, on_failure
        )
        self._changed = threading.Event()
        self._pipe_lock = threading.Lock()
        self._connection: Connection | None = None
        self.starts = 0

    def start(self) -> None:
        self._thread.start()

    def send_ledger_states(self, states: Mapping[str, LedgerState]) -> None:
        """Send the state that the next canaries carry."""
        with self._pipe_lock:
            if self._connection is None:
                return
            with contextlib.suppress(OSError, ValueError):  # the process is being replaced
                self._connection.send({flow: tuple(state) for flow, state in states.items()})

    def change(self, specs: Sequence[CanarySpec]) -> None:
        """Replace the process by one with *specs*."""
        self._specs = tuple(specs)
        self._changed.set()

    def stop(self) -> None:
        """End the canary process and wait for it."""
        self._stopping.set()
        self._thread.join(2 * _JOIN_SECONDS)

    def _supervise(self) -> None:
        # Ctrl-C reaches the whole process group. The canary process inherits this thread's signal
        # mask, which protects it until it ignores the signal itself. The resource tracker must be
        # running before: starting it unblocks the signal.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        # Not fork: librdkafka's threads and locks do not survive in a child process.
        context = multiprocessing.get_context("spawn")
        while not self._stopping.is_set():
            self._changed.clear()
            ours, theirs = context.Pipe()
            with self._pipe_lock:
                self._connection = ours
            process = context.Process(
                target=self._serve, args=(theirs, self._specs), name="mm2slo-canary", daemon=True
            )
            self._on_start()
            self.starts += 1
            process.start()
            theirs.close()
            self._receive(ours)
            # Only this thread closes it: a second close could close a reused file descriptor.
            with self._pipe_lock:
                self._connection = None
                ours.close()
            process.join(_JOIN_SECONDS)
            if process.is_alive():
                process.kill()
                process.join()
            if not self._stopping.is_set() and not self._changed.is_set():
                self._on_failure(Loop.CANARY)
                logger.error(
                    "canary process ended with exit code %s; restarting it", process.exitcode
                )
                self._stopping.wait(self._restart_seconds)

    def _receive(self, connection: Connection) -> None:
        """Collect events until either side closes the pipe."""
        while not self._stopping.is_set() and not self._changed.is_set():
            try:
                if not connection.poll(0.2):
                    continue
                events = connection.recv()
            except (EOFError, OSError):
                return
            self.events.put(*events)
