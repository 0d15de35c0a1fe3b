"""The canary process: threads that send and receive, and a pipe to the exporter."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from typing import TYPE_CHECKING

from mm2slo_exporter.canary.hints import Hint, Hints
from mm2slo_exporter.canary.outbox import Outbox
from mm2slo_exporter.canary.receiver import Receiver
from mm2slo_exporter.canary.sender import Sender
from mm2slo_kafka.client import ClusterClient

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from mm2slo_exporter.canary.spec import CanarySpec

_FLUSH_SECONDS = 0.1
_JOIN_SECONDS = 5.0


def run(connection: Connection, specs: Sequence[CanarySpec]) -> None:
    """Serve *specs* until the exporter closes its end of the pipe, or goes away."""
    # Ctrl-C reaches the whole process group; the exporter decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Problems travel as events: the exporter logs them once, in its own format.
    logging.disable(logging.CRITICAL)
    outbox, hints, stopping = Outbox(), Hints(), threading.Event()
    threads = _start(specs, outbox, hints, stopping)
    try:
        while not stopping.is_set():
            if connection.poll(_FLUSH_SECONDS):
                _take_hints(connection, hints)
            if events := outbox.take():
                connection.send(events)
    except (EOFError, OSError):
        _take_last_hints(connection, hints)  # the exporter is gone
    finally:
        stopping.set()
        for thread in threads:
            thread.join(_JOIN_SECONDS)
        with contextlib.suppress(OSError):
            connection.close()


def _take_hints(connection: Connection, hints: Hints) -> None:
    hints.update({flow: Hint(*hint) for flow, hint in connection.recv().items()})


def _take_last_hints(connection: Connection, hints: Hints) -> None:
    """Take what the exporter told before it closed its end: the farewells carry it."""
    with contextlib.suppress(EOFError, OSError):
        while connection.poll():
            _take_hints(connection, hints)


def _start(
    specs: Sequence[CanarySpec], outbox: Outbox, hints: Hints, stopping: threading.Event
) -> list[threading.Thread]:
    clients: dict[str, ClusterClient] = {}
    threads = []
    for spec in specs:
        for alias, properties in (
            (spec.source_alias, spec.source_client),
            (spec.target_alias, spec.target_client),
        ):
            if alias not in clients:
                clients[alias] = ClusterClient(alias, properties)
        source, target = clients[spec.source_alias], clients[spec.target_alias]
        restored = threading.Event()
        receiver = Receiver(spec, source, target, outbox, restored)
        sender = Sender(spec, source, outbox, hints)
        threads += [
            threading.Thread(
                target=receiver.run, args=(stopping,), name=f"receive-{spec.flow}", daemon=True
            ),
            threading.Thread(
                target=sender.run, args=(restored, stopping), name=f"send-{spec.flow}", daemon=True
            ),
        ]
    for thread in threads:
        thread.start()
    return threads
