"""Reads the end offsets of one target several times a second, in a thread of its own.

For each flow, it keeps what arrived between two reads.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

from mm2slo_core.cluster_writes import MAX_PARTITIONS, arrival_interval
from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import Observation
from mm2slo_exporter.flow_plan import FlowPlan, PartitionCache
from mm2slo_exporter.readers.flow_reader import OffsetSource
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_exporter.timeline.flow_writer import ClusterWriter
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading
from mm2slo_kafka.record_producer import DeliveryResult

_TIMEOUT_SECONDS = 2.0

_LONGEST_SECONDS = 5.0
"""Between two reads that are compared: within it no other replica becomes the writer."""

_IDLE_SECONDS = 1.0
"""Until it is checked again whether there is something to read."""

_WEIGHT = 0.1
"""Of the newest bracket in the published one."""


class ArrivalPoller:
    """One reader of a target for all its flows, so that the limits apply to the cluster."""

    def __init__(
        self,
        client: OffsetSource,
        writer: ClusterWriter,
        health: CollectionHealth,
        *,
        poll_interval: float,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """*poll_interval*: that of ordinary polls, to which the pace falls back."""
        self._client = client
        self._writer = writer
        self._health = health
        self._poll_interval = poll_interval
        self._cpu_clock = cpu_clock
        self._flows: tuple[FlowArrivals, ...] = ()
        self._of_flows: list[Sequence[TopicPartition]] = []
        self._united: tuple[TopicPartition, ...] = ()
        self._before: OffsetReading | None = None
        self.bracket: float | None = None
        """Attainable width of a bracket in seconds; None unless this replica writes."""
        self._is_started = False
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread = SupervisedThread(
            Loop.ARRIVALS, client.alias, self._run, self._stopping, health.record_loop_failure
        )

    def add(self, flow: FlowArrivals) -> None:
        """Read the partitions of *flow*, too; the first one starts the thread."""
        with self._lock:
            self._flows = (*self._flows, flow)
            if not self._is_started:
                self._is_started = True
                self._thread.start()

    def remove(self, flow: FlowArrivals) -> None:
        with self._lock:
            self._flows = tuple(each for each in self._flows if each is not flow)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            started = time.monotonic()
            interval = self.read()
            self._stopping.wait(max(0.0, interval - (time.monotonic() - started)))

    def read(self) -> float:
        """Read once; returns the interval until the next read."""
        cpu = self._cpu_clock()
        flows = self._flows
        if not self._writer.can_write(CollectionStage.ARRIVALS):
            self.bracket = None
            return _IDLE_SECONDS
        partitions = self._partitions(flows)
        if not 0 < len(partitions) <= MAX_PARTITIONS:
            self.bracket = self._poll_interval
            return _IDLE_SECONDS
        try:
            now = self._client.end_offsets(partitions, timeout=_TIMEOUT_SECONDS)
        except KafkaOperationError as problem:
            self._record_result(problem)
            self.bracket = self._poll_interval
            return self._poll_interval
        before, self._before = self._before, now
        if before is not None and now.requested_at - before.answered_at < _LONGEST_SECONDS:
            self._write(flows, before, now)
        if now.errors:
            # The client then sends requests per leader, which the pace does not include.
            self.bracket = self._poll_interval
            return self._poll_interval
        return arrival_interval(len(partitions), self._cpu_clock() - cpu)

    def _partitions(self, flows: tuple[FlowArrivals, ...]) -> tuple[TopicPartition, ...]:
        """Those of all flows, each once; computed again only when those of a flow were replaced."""
        of_flows = [flow.partitions for flow in flows]
        if of_flows != self._of_flows:
            self._of_flows = of_flows
            self._united = tuple(dict.fromkeys(chain.from_iterable(of_flows)))
        return self._united

    def _write(
        self, flows: tuple[FlowArrivals, ...], before: OffsetReading, now: OffsetReading
    ) -> None:
        for flow in flows:
            for record in flow.records(before, now):
                key, value = record.encode_key(), record.encode_value()
                self._writer.send(CollectionStage.ARRIVALS, key, value, self._record_result)
        width = now.answered_at - before.requested_at
        published = width if self.bracket is None else self.bracket
        self.bracket = published + _WEIGHT * (width - published)

    def _record_result(self, result: DeliveryResult) -> None:
        alias = self._client.alias
        if isinstance(result, KafkaOperationError):
            self._health.record_failure(alias, CollectionStage.ARRIVALS, result.kind, str(result))
        else:
            self._health.record_success(alias, CollectionStage.ARRIVALS)


class FlowArrivals:
    """Evaluations call `observe`, the thread of an `ArrivalPoller` reads the rest."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._cache = PartitionCache(FlowPlan.target_partitions)
        self._topic_ids: Mapping[str, str] = {}
        self.partitions: Sequence[TopicPartition] = ()

    def observe(self, seen: Observation) -> None:
        """Follow the flow's topics."""
        self._topic_ids = seen.target.topic_ids
        self.partitions = self._cache.get(seen.plan, seen.target.topics)

    def records(self, before: OffsetReading, now: OffsetReading) -> Iterator[WatermarkRecord]:
        """One record per topic, of partitions that grew between two reads."""
        grown: defaultdict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for partition in self.partitions:
            end, previous = now.offsets.get(partition), before.offsets.get(partition)
            if end is not None and previous is not None and end > previous:
                grown[partition.topic].append((partition.partition, end, end - previous))
        times = PollTimes(
            now.requested_at, now.answered_at, before.requested_at, before.answered_at
        )
        for topic, rows in grown.items():
            numbers, ends, arrived = zip(*rows, strict=True)
            yield WatermarkRecord(
                flow=self._flow,
                side=Side.TARGET,
                topic=topic,
                topic_id=self._topic_ids.get(topic),
                isolation="read_uncommitted",
                times=times,
                partitions=numbers,
                ends=ends,
                arrived=arrived,
            )
