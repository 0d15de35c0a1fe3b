"""Clients of a drill: traffic with a ledger on the source, and consumers in the place of groups."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_core.cutover.drill_report import GroupRecovery
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError

STAND_IN: Final = "__mm2slo-drill."
"""Prefix of groups on the target: `groups.exclude` leaves out `__.*`, and they commit nothing."""


class DrillTraffic:
    """A producer with a ledger, and an application that reads and commits, on the source."""

    def __init__(self, source: ClusterClient, topic: str, group: str, rate: int) -> None:
        self._source = source
        self._topic = topic
        self._group = group
        self._rate = rate
        self._stopping = threading.Event()
        # Requests to a source that is away take a minute: nothing waits for their end.
        works = (self._write, self._read)
        self._threads = [threading.Thread(target=each, daemon=True) for each in works]
        self.ledger: dict[bytes, float] = {}
        """When each record was acknowledged."""
        self.processed: set[bytes] = set()
        self.committed: set[bytes] = set()

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._stopping.set()

    def _write(self) -> None:
        settings = {"acks": "all", "linger.ms": "0", "message.timeout.ms": "5000"}
        producer: Producer = self._source.handles.producer(settings)
        started, number = time.monotonic(), 0
        while not self._stopping.wait(1 / self._rate):
            while number < (time.monotonic() - started) * self._rate:
                with suppress(BufferError):  # while the source is away
                    value = b"%d" % number
                    producer.produce(self._topic, value, on_delivery=self._acknowledge)
                number += 1
            producer.poll(0)
        producer.flush(6)

    def _acknowledge(self, error: object, message: Any) -> None:
        if error is None:
            self.ledger[message.value()] = time.time()

    def _read(self) -> None:
        settings = {
            "group.id": self._group,
            "enable.auto.offset.store": "true",
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
        }
        consumer: Consumer = self._source.handles.consumer(settings)
        consumer.subscribe([self._topic])
        due = time.monotonic() + 1
        while not self._stopping.is_set():
            for message in consumer.consume(500, timeout=0.2):
                if message.error() is None:
                    self.processed.add(message.value() or b"")
            if time.monotonic() >= due and self.processed:
                reached = set(self.processed)
                with suppress(KafkaException):  # while the source is away
                    consumer.commit(asynchronous=False)
                    self.committed = reached
                due = time.monotonic() + 1
        consumer.close()


class StandIn(threading.Thread):
    """Reads the copies in the place of a group, to the ends that they have at its start."""

    def __init__(
        self,
        target: ClusterClient,
        recovery: GroupRecovery,
        starts: Mapping[TopicPartition, int],
        rate: int,
    ) -> None:
        super().__init__(name=f"stand-in for {recovery.group}", daemon=True)
        self.recovery = recovery
        self.values: list[bytes] = []
        self._target = target
        self._starts = starts
        self._rate = rate
        self._stopping = threading.Event()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def run(self) -> None:
        if not self._starts:
            self.recovery.problem = "it has neither commits nor checkpoints on the target"
            return
        settings = {
            "group.id": STAND_IN + self.recovery.group,
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
        }
        consumer: Consumer = self._target.handles.consumer(settings)
        try:
            self._resume(consumer)
        except (KafkaException, KafkaOperationError) as error:
            self.recovery.problem = str(error)
        finally:
            consumer.close()

    def _resume(self, consumer: Consumer) -> None:
        topics = sorted({each.topic for each in self._starts})
        counts = self._target.topics().partition_counts
        partitions = [
            TopicPartition(topic, number) for topic in topics for number in range(counts[topic])
        ]
        ends = dict(self._target.end_offsets(partitions).offsets)
        positions = {each: self._starts.get(each, 0) for each in partitions}

        def assign(_: Consumer, assigned: list[RawPartition]) -> None:
            for each in assigned:
                each.offset = positions[TopicPartition(each.topic, each.partition)]
            consumer.assign(assigned)
            self.recovery.assigned_at = time.time()

        consumer.subscribe(topics, on_assign=assign)
        found = self.recovery
        started, limit = time.monotonic(), 0.0
        while not self._stopping.is_set():
            limit = (time.monotonic() - started) * self._rate
            allowed = min(max(int(limit) - found.read, 1), 500)
            for message in consumer.consume(allowed, timeout=0.1):
                if message.error() is not None:
                    continue
                found.read += 1
                self.values.append(message.value() or b"")
                partition = TopicPartition(message.topic() or "", message.partition() or 0)
                positions[partition] = (message.offset() or 0) + 1
                is_beyond = found.predicted_most is not None and found.read > found.predicted_most
                if is_beyond and found.resumed_at is None:
                    found.resumed_at = time.time()
            is_assigned = found.assigned_at is not None
            if is_assigned and all(positions[each] >= end for each, end in ends.items()):
                found.normal_at = time.time()
                found.resumed_at = found.resumed_at or found.normal_at
                return


def delete_groups(target: ClusterClient, groups: Sequence[str]) -> None:
    """Delete the stand-ins' groups, which may have vanished by themselves: they have no commits."""
    if not groups:
        return
    with suppress(KafkaException, KafkaOperationError, TimeoutError):
        names = [STAND_IN + each for each in groups]
        for answer in target.admin().delete_consumer_groups(names).values():
            with suppress(KafkaException):
                answer.result(10)


def delete_topic(client: ClusterClient, topic: str) -> bool:
    """Delete *topic*; False if the cluster does not answer or refuses."""
    try:
        client.admin().delete_topics([topic], operation_timeout=10)[topic].result(15)
    except (KafkaException, KafkaOperationError, TimeoutError):
        return False
    return True
