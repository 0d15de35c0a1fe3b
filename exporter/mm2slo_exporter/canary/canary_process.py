"""The canary process: its pipe to the exporter, and its threads.

For each cluster, one thread sends and one reads. The fork server loads this module, which imports
neither the exporter's service, readers, state and families nor its web server, nor pydantic: these
take 25 MB.
"""

import contextlib
import logging
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.connection import Connection

from mm2slo_core.kafka_permissions import CANARY_GROUPS
from mm2slo_exporter.canary.canary_messages import (
    CanarySpec,
    EventBuffer,
    LedgerState,
    LedgerStates,
    StageFailed,
)
from mm2slo_exporter.canary.canary_receiver import ArrivalReader, CanaryReceiver, EarlierCanaries
from mm2slo_exporter.canary.canary_sender import CanarySender, CarrierTopic, SendLoop
from mm2slo_exporter.collection_health import CollectionStage
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.leadership import LeasedSlot

_FLUSH_SECONDS = 0.1
_JOIN_SECONDS = 5.0


def run_canary_process(connection: Connection, specs: Sequence[CanarySpec]) -> None:
    """Serve *specs* until the exporter closes its end of the pipe, or ends."""
    # Failures are sent as events: the exporter logs them once, in its own format.
    logging.disable(logging.CRITICAL)
    outbox, ledger_states, stopping = EventBuffer(), LedgerStates(), threading.Event()
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


class CanaryThreads:
    """Shares clients, and what runs on them, among flows that connect in the same way."""

    def __init__(
        self, outbox: EventBuffer, ledger_states: LedgerStates, stopping: threading.Event
    ) -> None:
        self._outbox = outbox
        self._ledger_states = ledger_states
        self._stopping = stopping
        self._clients: dict[frozenset[tuple[str, str]], ClusterClient] = {}
        self._readers: dict[ClusterClient, ArrivalReader] = {}
        self._loops: dict[ClusterClient, SendLoop] = {}
        self._threads: list[threading.Thread] = []

    def start(self, specs: Sequence[CanarySpec]) -> list[threading.Thread]:
        flows: defaultdict[tuple[ClusterClient, str], list[CanarySpec]] = defaultdict(list)
        for spec in specs:
            if spec.carrier == "off":
                receiver = CanaryReceiver(spec, self._outbox, instance=lambda: None)
                self._reader(spec).add(receiver)
            else:
                source = self._client(spec.source_alias, spec.source_client)
                flows[source, spec.source_topic].append(spec)
        for (source, topic), sharing in flows.items():
            self._add_carrier(source, topic, sharing)
        for client, loop in self._loops.items():
            self._add("send", client, loop.run)
        for client, reader in self._readers.items():
            self._add("receive", client, reader.run)
        for thread in self._threads:
            thread.start()
        return self._threads

    def _add_carrier(
        self, source: ClusterClient, topic: str, sharing: Sequence[CanarySpec]
    ) -> None:
        """Add the flows whose canaries *topic* carries."""
        if source not in self._loops:
            self._loops[source] = SendLoop(source.handles)
        loop = self._loops[source]
        carrier = CarrierTopic(sharing[0], source, self._stopping, on_change=loop.producer.renew)
        loop.add(carrier.run())
        instance = self._instance(source, carrier, sharing)
        receivers = []
        for spec in sharing:
            receiver = CanaryReceiver(spec, self._outbox, instance=instance)
            sender = CanarySender(
                spec,
                carrier,
                loop.producer,
                self._outbox,
                ledger_states=self._ledger_states,
                instance=instance,
                is_restored=partial(getattr, receiver, "is_restored"),
                copy_partitions=partial(getattr, receiver, "copy_partitions"),
            )
            loop.add_sender(sender)
            reader = self._reader(spec)
            reader.add(receiver)
            receivers.append((reader, receiver))
        earlier = EarlierCanaries(source, topic, [each for _, each in receivers], instance)

        def restore(stopping: threading.Event) -> None:
            if earlier.report(stopping):
                for reader, receiver in receivers:
                    reader.add_canaries(receiver)

        self._add("restore", source, restore)

    def _instance(
        self, source: ClusterClient, carrier: CarrierTopic, sharing: Sequence[CanarySpec]
    ) -> Callable[[], str | None]:
        """The name of this replica in canaries on a topic; None while it has no number."""
        topic, name = sharing[0].source_topic, sharing[0].instance
        if name is not None:
            return lambda: name
        slot = LeasedSlot(
            source,
            prefix=f"{CANARY_GROUPS}{topic}",
            topic=topic,
            prepare=lambda _stopping: carrier.ensure(),
            on_problem=partial(self._report_problem, sharing),
        )
        self._add("lease", source, slot.run)
        return lambda: None if slot.number is None else f"replica-{slot.number}"

    def _report_problem(self, sharing: Sequence[CanarySpec], problem: KafkaOperationError) -> None:
        for spec in sharing:
            self._outbox.put(
                StageFailed.of(
                    problem,
                    flow=spec.flow,
                    cluster=spec.source_alias,
                    stage=CollectionStage.CANARY_SEND.value,
                    at=time.time(),
                )
            )

    def _reader(self, spec: CanarySpec) -> ArrivalReader:
        target = self._client(spec.target_alias, spec.target_client)
        if target not in self._readers:
            self._readers[target] = ArrivalReader(target)
        return self._readers[target]

    def _client(self, alias: str, properties: Mapping[str, str]) -> ClusterClient:
        key = frozenset(properties.items())
        if key not in self._clients:
            self._clients[key] = ClusterClient(alias, properties)
        return self._clients[key]

    def _add(
        self, task: str, client: ClusterClient, run: Callable[[threading.Event], None]
    ) -> None:
        name = f"{task}-{client.alias}"
        self._threads.append(
            threading.Thread(target=run, args=(self._stopping,), name=name, daemon=True)
        )
