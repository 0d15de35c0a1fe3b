"""The threads of the canary process: for each cluster, one that sends and one that reads."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING

from mm2slo_exporter.canary.arrival_reader import ArrivalReader
from mm2slo_exporter.canary.canary_events import StageFailed
from mm2slo_exporter.canary.canary_receiver import Receiver
from mm2slo_exporter.canary.canary_sender import Sender
from mm2slo_exporter.canary.carrier_topic import CarrierTopic
from mm2slo_exporter.canary.earlier_canaries import EarlierCanaries
from mm2slo_exporter.canary.send_loop import SendLoop
from mm2slo_exporter.collection_health import Stage
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.leased_slot import LeasedSlot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_exporter.canary.canary_spec import CanarySpec
    from mm2slo_exporter.canary.event_outbox import Outbox
    from mm2slo_exporter.canary.ledger_state import LedgerStates
    from mm2slo_kafka.kafka_errors import KafkaOperationError


class CanaryThreads:
    """Shares clients, and what runs on them, among flows that connect in the same way."""

    def __init__(
        self, outbox: Outbox, ledger_states: LedgerStates, stopping: threading.Event
    ) -> None:
        self._outbox = outbox
        self._ledger_states = ledger_states
        self._stopping = stopping
        self._clients: dict[frozenset[tuple[str, str]], ClusterClient] = {}
        self._readers: dict[ClusterClient, ArrivalReader] = {}
        self._loops: dict[ClusterClient, SendLoop] = {}
        self._threads: list[threading.Thread] = []

    def start(self, specs: Sequence[CanarySpec]) -> list[threading.Thread]:
        """Start the threads for all flows."""
        flows: defaultdict[tuple[ClusterClient, str], list[CanarySpec]] = defaultdict(list)
        for spec in specs:
            if spec.carrier == "off":
                receiver = Receiver(spec, self._outbox, instance=lambda: None)
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
            receiver = Receiver(spec, self._outbox, instance=instance)
            sender = Sender(
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
            prefix=f"mm2slo.canary.{topic}",
            topic=topic,
            prepare=lambda _stopping: carrier.ensure(),
            on_problem=partial(self._report_problem, sharing),
        )
        self._add("lease", source, slot.run)
        return lambda: None if slot.number is None else f"replica-{slot.number}"

    def _report_problem(self, sharing: Sequence[CanarySpec], problem: KafkaOperationError) -> None:
        stage, kind, message = Stage.CANARY_SEND.value, problem.kind.value, str(problem)
        for spec in sharing:
            at = time.time()
            self._outbox.put(StageFailed(spec.flow, spec.source_alias, stage, kind, message, at))

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
