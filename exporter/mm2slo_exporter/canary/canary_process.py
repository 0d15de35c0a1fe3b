"""The canary process: sending and receiving threads, and a pipe to the exporter."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from mm2slo_exporter.canary.canary_events import StageFailed
from mm2slo_exporter.canary.canary_receiver import Receiver
from mm2slo_exporter.canary.canary_sender import Sender
from mm2slo_exporter.canary.carrier_topic import CarrierTopic
from mm2slo_exporter.canary.event_outbox import Outbox
from mm2slo_exporter.canary.ledger_state import LedgerState, LedgerStates
from mm2slo_exporter.collection_health import Stage
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.leased_slot import LeasedSlot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection

    from mm2slo_exporter.canary.canary_spec import CanarySpec
    from mm2slo_kafka.kafka_errors import KafkaOperationError

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
    threads = _start(specs, outbox, ledger_states, stopping)
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


def _start(
    specs: Sequence[CanarySpec],
    outbox: Outbox,
    ledger_states: LedgerStates,
    stopping: threading.Event,
) -> list[threading.Thread]:
    clients: dict[str, ClusterClient] = {}
    slots: dict[tuple[str, str], LeasedSlot] = {}
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
        instance = _instance(spec, source, slots, outbox)
        receiver = Receiver(spec, source, target, outbox, restored, instance=instance)
        sender = Sender(
            spec,
            source,
            outbox,
            ledger_states,
            instance,
            copy_partitions=partial(getattr, receiver, "copy_partitions"),
        )
        threads += [
            threading.Thread(
                target=receiver.run, args=(stopping,), name=f"receive-{spec.flow}", daemon=True
            ),
            threading.Thread(
                target=sender.run, args=(restored, stopping), name=f"send-{spec.flow}", daemon=True
            ),
        ]
    threads += [
        threading.Thread(target=slot.run, args=(stopping,), name=f"lease-{alias}", daemon=True)
        for (alias, _topic), slot in slots.items()
    ]
    for thread in threads:
        thread.start()
    return threads


def _instance(
    spec: CanarySpec,
    source: ClusterClient,
    slots: dict[tuple[str, str], LeasedSlot],
    outbox: Outbox,
) -> Callable[[], str | None]:
    """The name of this replica in canaries of *spec*; None while it has no number."""
    if spec.instance is not None or spec.carrier == "off":
        return lambda: spec.instance
    topic = spec.source_topic
    slot = slots.get((spec.source_alias, topic))
    if slot is None:
        slot = LeasedSlot(
            source,
            prefix=f"mm2slo.canary.{topic}",
            topic=topic,
            prepare=CarrierTopic(spec, source).ensure,
            on_problem=partial(_report_problem, spec, outbox),
        )
        slots[spec.source_alias, topic] = slot
    return lambda: None if slot.number is None else f"replica-{slot.number}"


def _report_problem(spec: CanarySpec, outbox: Outbox, problem: KafkaOperationError) -> None:
    alias, stage = spec.source_alias, Stage.CANARY_SEND.value
    kind, message = problem.kind.value, str(problem)
    outbox.put(StageFailed(spec.flow, alias, stage, kind, message, time.time()))
