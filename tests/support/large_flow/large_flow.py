"""Starts two brokers and creates topics, groups and MirrorMaker 2's internal records."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so

from large_flow.record_sender import RecordSender, append
from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.records.mirror_records import Checkpoint, OffsetSync
from mm2slo_core.replication_policy import DefaultPolicy, internal_topics
from mm2slo_core.topology import Flow
from mm2slo_core.topology import TopicPartition as Partition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.running_lab import Lab

FLOW = Flow("us", "eu")
SOURCE_CONNECTOR = "MirrorSourceConnector"
INTERNAL = internal_topics(FLOW, DefaultPolicy())
_CHUNK = 200
_CREATION_SECONDS = 300.0
_TASKS = 4
_COMPACTED = {"cleanup.policy": "compact"}


@dataclass(frozen=True)
class Shape:
    """The size of the flow."""

    topics: int = 2000
    partitions: int = 5
    groups: int = 200

    @property
    def source_topics(self) -> list[str]:
        return [f"orders.events-{number:04d}" for number in range(self.topics)]

    @property
    def source_partitions(self) -> list[Partition]:
        return [
            Partition(topic, number)
            for topic in self.source_topics
            for number in range(self.partitions)
        ]

    def topics_of_group(self, group: int) -> list[str]:
        """Each topic is read by one group."""
        return self.source_topics[group :: self.groups]


class LargeFlow:
    """Two brokers with the topics of one flow."""

    def __init__(self, lab: Lab, shape: Shape) -> None:
        self.lab = lab
        self.shape = shape
        self.source = lab.cluster("us").librdkafka()
        self.target = lab.cluster("eu").librdkafka()

    @classmethod
    @contextmanager
    def start(cls, shape: Shape, broker_heap: int = 1024) -> Iterator[LargeFlow]:
        topology = LabTopology(
            flows=(FLOW,),
            engine=LabEngine.NONE,
            broker_heap=broker_heap,
            broker_properties={
                # The lab's interval of one second is too short for this many partitions.
                "log.retention.check.interval.ms": "300000",
                "log.index.size.max.bytes": "65536",
            },
        )
        with Lab.start(topology) as lab:
            flow = cls(lab, shape)
            flow.create_topics()
            flow.seed()
            yield flow

    def create_topics(self) -> None:
        names = self.shape.source_topics
        internal_source = {INTERNAL.offset_syncs.topic, INTERNAL.heartbeats.topic}
        internal_target = {
            INTERNAL.checkpoints.topic,
            INTERNAL.remote_heartbeats.topic,
            INTERNAL.connect_offsets.topic,
            INTERNAL.connect_status.topic,
            INTERNAL.connect_configs.topic,
        }
        for properties, data, internal in (
            (self.source, names, internal_source),
            (self.target, [f"us.{name}" for name in names], internal_target),
        ):
            admin = AdminClient({"log_level": 2, **properties})
            new = [NewTopic(name, 1, 1, config=_COMPACTED) for name in sorted(internal)]
            new += [NewTopic(name, self.shape.partitions, 1) for name in data]
            for start in range(0, len(new), _CHUNK):
                chunk = new[start : start + _CHUNK]
                for future in admin.create_topics(chunk, operation_timeout=60).values():
                    future.result(120)
            await_leaders(properties, data, self.shape.partitions)

    def seed(self) -> None:
        """Write a record, its copy, offset sync and commit per partition; create the groups."""
        shape = self.shape
        append(self.source, shape.source_partitions)
        append(self.target, ((f"us.{topic}", number) for topic, number in shape.source_partitions))
        with RecordSender(self.source) as source, RecordSender(self.target) as target:
            for partition in shape.source_partitions:
                sync = OffsetSync(partition, 0, 0)
                source.send(INTERNAL.offset_syncs.topic, sync.encode_value(), key=sync.encode_key())
                commit = SourceOffset(SOURCE_CONNECTOR, FLOW.source, partition, 0)
                target.send(
                    INTERNAL.connect_offsets.topic, commit.encode_value(), key=commit.encode_key()
                )
            for group in range(shape.groups):
                for topic in shape.topics_of_group(group):
                    for number in range(shape.partitions):
                        copied = Partition(f"us.{topic}", number)
                        checkpoint = Checkpoint(f"group-{group:03d}", copied, 1, 1)
                        target.send(
                            INTERNAL.checkpoints.topic,
                            checkpoint.encode_value(),
                            key=checkpoint.encode_key(),
                        )
            self._seed_connect(target)
        self._seed_groups()

    def _seed_connect(self, target: RecordSender) -> None:
        """Write running tasks and their assignments in Connect's format."""
        running = json.dumps(
            {"state": "RUNNING", "trace": None, "worker_id": "w:1", "generation": 1}
        ).encode()
        names = [
            f"{partition.topic}-{partition.partition}" for partition in self.shape.source_partitions
        ]
        status, configs = INTERNAL.connect_status.topic, INTERNAL.connect_configs.topic
        target.send(status, running, key=f"status-connector-{SOURCE_CONNECTOR}".encode())
        for task in range(_TASKS):
            key = f"status-task-{SOURCE_CONNECTOR}-{task}".encode()
            target.send(status, running, key=key)
            assigned = {"properties": {"task.assigned.partitions": ",".join(names[task::_TASKS])}}
            key = f"task-{SOURCE_CONNECTOR}-{task}".encode()
            target.send(configs, json.dumps(assigned).encode(), key=key)

    def _seed_groups(self) -> None:
        admin = AdminClient({"log_level": 2, **self.source})
        for group in range(min(self.shape.groups, self.shape.topics)):
            committed = [
                TopicPartition(topic, number, 1)
                for topic in self.shape.topics_of_group(group)
                for number in range(self.shape.partitions)
            ]
            request = ConsumerGroupTopicPartitions(f"group-{group:03d}", committed)
            for future in admin.alter_consumer_group_offsets([request]).values():
                future.result(30)


def await_leaders(properties: Mapping[str, str], topics: list[str], partitions: int) -> None:
    """Wait until all partitions have leaders: a topic becomes visible before its replicas."""
    wanted = [Partition(topic, number) for topic in topics for number in range(partitions)]
    deadline = time.monotonic() + _CREATION_SECONDS
    while True:
        with ClusterClient("new", properties) as client:
            try:
                missing = len(client.start_offsets(wanted, 60).errors)
            except KafkaOperationError:
                missing = len(wanted)
        if not missing:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{missing} partitions have no leader yet")
        time.sleep(1)


_COMMITS_EVERY = 12
"""Cycles of 5 s per offset flush interval of 60 s."""
_SYNCS_EVERY = 100
"""MirrorMaker 2's default of `offset.lag.max`, in records."""


class Mover:
    """Appends one record per call to each partition; copies lag by one record until `settle`."""

    def __init__(self, flow: LargeFlow) -> None:
        self._flow = flow
        self._source = RecordSender(flow.source)
        self._target = RecordSender(flow.target)
        self._partitions = flow.shape.source_partitions
        # The n-th record on the source is the n-th on the target, also from earlier movers.
        end, copied = self._end_of_first("", flow.source), self._end_of_first("us.", flow.target)
        self._step, self._behind = end - 1, end - copied

    def move(self) -> None:
        """Append a record to all source partitions, replicate the preceding one, commit some."""
        self._step += 1
        append(self._flow.source, self._partitions)
        while self._behind:
            self._copy()
        self._behind = 1
        self._write_progress()

    def settle(self) -> None:
        """Replicate the backlog: all lags are then 0."""
        while self._behind:
            self._copy()

    def _copy(self) -> None:
        copies = ((f"us.{partition.topic}", partition.partition) for partition in self._partitions)
        append(self._flow.target, copies)
        self._behind -= 1

    def _end_of_first(self, prefix: str, properties: Mapping[str, str]) -> int:
        first = self._partitions[0]
        consumer = Consumer({**properties, "group.id": "bench", "log_level": 2})
        partition = TopicPartition(prefix + first.topic, first.partition)
        _start, end = consumer.get_watermark_offsets(partition, timeout=60)
        consumer.close()
        return int(end)

    def _write_progress(self) -> None:
        newest = self._step - 1
        for partition in self._partitions[self._step % _COMMITS_EVERY :: _COMMITS_EVERY]:
            commit = SourceOffset(SOURCE_CONNECTOR, FLOW.source, partition, newest)
            self._target.send(
                INTERNAL.connect_offsets.topic, commit.encode_value(), key=commit.encode_key()
            )
        for partition in self._partitions[self._step % _SYNCS_EVERY :: _SYNCS_EVERY]:
            sync = OffsetSync(partition, newest, newest)
            self._source.send(
                INTERNAL.offset_syncs.topic, sync.encode_value(), key=sync.encode_key()
            )
        self._source.flush()
        self._target.flush()
