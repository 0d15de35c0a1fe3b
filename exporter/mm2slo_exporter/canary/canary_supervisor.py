"""Supervises the canary process and collects its events.

Canaries run in a separate process because arrival times must not depend on the interpreter lock
while the exporter converts tens of thousands of offsets.
"""

import contextlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection

from mm2slo_exporter.canary.canary_messages import CanarySpec, EventBuffer, LedgerState
from mm2slo_exporter.canary.canary_process import run_canary_process
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.fork_server import FORK_SERVER, WorkerExit

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
        while not self._stopping.is_set():
            self._changed.clear()
            self._on_start()
            self.starts += 1
            try:
                outcome = f"ended with {self._run_process()}"
            except OSError as error:
                outcome = f"could not be started: {error}"
            if not self._stopping.is_set() and not self._changed.is_set():
                self._on_failure(Loop.CANARY)
                logger.error("canary process %s; restarting it", outcome)
                self._stopping.wait(self._restart_seconds)

    def _run_process(self) -> WorkerExit:
        process = FORK_SERVER.start(self._serve, self._specs)
        with self._pipe_lock:
            self._connection = process.connection
        self._receive(process.connection)
        # Only this thread closes it: a second close could close a reused file descriptor.
        with self._pipe_lock:
            self._connection = None
            process.connection.close()  # the process ends with it
        return process.end(_JOIN_SECONDS)

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
