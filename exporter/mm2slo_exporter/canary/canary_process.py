"""The canary process: sending and receiving threads, and a pipe to the exporter."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING

from mm2slo_exporter.canary.canary_threads import CanaryThreads
from mm2slo_exporter.canary.event_outbox import Outbox
from mm2slo_exporter.canary.ledger_state import LedgerState, LedgerStates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from mm2slo_exporter.canary.canary_spec import CanarySpec

_FLUSH_SECONDS = 0.1
_JOIN_SECONDS = 5.0


def run(connection: Connection, specs: Sequence[CanarySpec]) -> None:
    """Serve *specs* until the exporter closes its end of the pipe, or ends."""
    # Ctrl-C reaches the whole process group; the exporter decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Failures are sent as events: the exporter logs them once, in its own format.
    logging.disable(logging.CRITICAL)
    outbox, ledger_states, stopping = Outbox(), LedgerStates(), threading.Event()
    failed = _fail_with_any_thread(stopping)
    threads = CanaryThreads(outbox, ledger_states, stopping).start(specs)
    try:
        while not stopping.is_set():
            if connection.poll(_FLUSH_SECONDS):
                _receive_ledger_states(connection, ledger_states)
            if events := outbox.take():
                connection.send(events)
    except (EOFError, OSError):
        _receive_last_ledger_states(connection, ledger_states)  # the exporter has ended
    finally:
        stopping.set()
        for thread in threads:
            thread.join(_JOIN_SECONDS)
        with contextlib.suppress(OSError):
            connection.close()
    if failed.is_set():
        sys.exit("a canary thread failed: ending the process, which the exporter restarts")


def _fail_with_any_thread(stopping: threading.Event) -> threading.Event:
    """End the process when a thread fails; returns the event that is set then.

    Without it, canaries would silently be neither sent nor received.
    """
    failed, print_traceback = threading.Event(), threading.excepthook

    def handle(args: threading.ExceptHookArgs) -> None:
        print_traceback(args)
        failed.set()
        stopping.set()

    threading.excepthook = handle
    return failed


def _receive_ledger_states(connection: Connection, ledger_states: LedgerStates) -> None:
    ledger_states.update({flow: LedgerState(*state) for flow, state in connection.recv().items()})


def _receive_last_ledger_states(connection: Connection, ledger_states: LedgerStates) -> None:
    """Receive what the exporter sent before it closed its end, for the final canaries."""
    with contextlib.suppress(EOFError, OSError):
        while connection.poll():
            _receive_ledger_states(connection, ledger_states)
