"""Clients of a drill: traffic with a ledger on the source, and consumers in the place of groups."""

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
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
        self.topic = topic
        self.group = group
        self.problem = ""
        """The newest failure of a request, which a source that is away has, too."""
        self._source = source
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
        """Write, read and commit."""
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """End both; requests in progress go on."""
        self._stopping.set()

    def _write(self) -> None:
        settings = {"acks": "all", "linger.ms": "0", "message.timeout.ms": "5000"}
        producer: Producer = self._source.handles.producer(settings)
        started, number = time.monotonic(), 0
        while not self._stopping.wait(1 / self._rate):
            while number < (time.monotonic() - started) * self._rate:
                with suppress(BufferError):  # while the source is away
                    value = b"%s %d" % (self.topic.encode(), number)
                    producer.produce(self.topic, value, on_delivery=self._acknowledge)
                number += 1
            producer.poll(0)
        producer.flush(6)

    def _acknowledge(self, error: object, message: Any) -> None:
        if error is None:
            self.ledger[message.value()] = time.time()
        else:
            self.problem = f"writing: {error}"

    def _read(self) -> None:
        settings = {
            "group.id": self.group,
            "enable.auto.offset.store": "true",
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
        }
        consumer: Consumer = self._source.handles.consumer(settings)
        consumer.subscribe([self.topic])
        due = time.monotonic() + 1
        while not self._stopping.is_set():
            for message in consumer.consume(500, timeout=0.2):
                if (error := message.error()) is None:
                    self.processed.add(message.value() or b"")
                else:
                    self.problem = f"reading: {error.str()}"
            if time.monotonic() >= due and self.processed:
                reached = set(self.processed)
                try:
                    consumer.commit(asynchronous=False)
                    self.committed = reached
                except KafkaException as error:
                    self.problem = f"committing: {error.args[0].str()}"
                due = time.monotonic() + 1
        consumer.close()


class StandIn(threading.Thread):
    """Reads the copies in the place of a group, up to what they have at its start."""

    def __init__(
        self,
        target: ClusterClient,
        recovery: GroupRecovery,
        starts: Mapping[TopicPartition, int],
        rate: int,
        *,
        keeps_values: bool,
    ) -> None:
        super().__init__(name=f"stand-in for {recovery.group}", daemon=True)
        self.recovery = recovery
        self.values: set[bytes] = set()
        self._keeps_values = keeps_values
        self._target = target
        self._starts = starts
        self._rate = rate
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End it, and wait."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        """A failure is the problem of the group: the other ones go on."""
        if not self._starts:
            self._fails("it has neither commits nor checkpoints on the target")
            return
        settings = {
            "group.id": STAND_IN + self.recovery.group,
            "enable.auto.commit": "false",
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
        }
        try:
            places = self._places()
            consumer: Consumer = self._target.handles.consumer(settings)
            try:
                self._resume(consumer, places)
            finally:
                consumer.close()
        except (KafkaException, KafkaOperationError) as error:
            self._fails(str(error))

    def _fails(self, problem: str) -> None:
        self.recovery.problem = "; ".join(filter(None, (self.recovery.problem, problem)))

    def _places(self) -> Mapping[TopicPartition, tuple[int, int]]:
        """Start and end of each partition of the group's topics."""
        topics = sorted({each.topic for each in self._starts})
        counts = self._target.topics().partition_counts
        if missing := [topic for topic in topics if topic not in counts]:
            self._fails(f"not on the target: {', '.join(missing)}")
        partitions = [
            TopicPartition(topic, number)
            for topic in topics
            for number in range(counts.get(topic, 0))
        ]
        ends, firsts = self._target.end_offsets(partitions), self._target.start_offsets(partitions)
        if unread := sorted(ends.errors.keys() | firsts.errors.keys()):
            self._fails(f"not read: {', '.join(map(str, unread))}")
        places = {}
        for each in set(partitions).difference(unread):
            start = self._starts.get(each, firsts.offsets[each])
            if not firsts.offsets[each] <= start <= ends.offsets[each]:
                self._fails(f"{each}: {start} is outside of the log")
            places[each] = (start, ends.offsets[each])
        return places

    def _resume(self, consumer: Consumer, places: Mapping[TopicPartition, tuple[int, int]]) -> None:
        found, left = self.recovery, {each for each, (start, end) in places.items() if start < end}

        def assign(_: Consumer, assigned: list[RawPartition]) -> None:
            known = [
                each for each in assigned if TopicPartition(each.topic, each.partition) in places
            ]
            for each in known:
                each.offset = places[TopicPartition(each.topic, each.partition)][0]
            consumer.assign(known)
            found.assigned_at = time.time()

        consumer.subscribe(sorted({each.topic for each in places}), on_assign=assign)
        started = time.monotonic()
        while not self._stopping.is_set():
            allowed = int((time.monotonic() - started) * self._rate) - found.read
            for message in consumer.consume(min(max(allowed, 1), 500), timeout=0.1):
                partition = TopicPartition(message.topic() or "", message.partition() or 0)
                if (error := message.error()) is not None:
                    # Markers of transactions take offsets, so that the last record is not the end.
                    if error.code() == KafkaError._PARTITION_EOF:
                        left.discard(partition)
                    continue
                found.read += 1
                if self._keeps_values:
                    self.values.add(message.value() or b"")
                if (message.offset() or 0) + 1 >= places[partition][1]:
                    left.discard(partition)
                is_beyond = found.predicted_most is not None and found.read > found.predicted_most
                if is_beyond and found.resumed_at is None:
                    found.resumed_at = time.time()
            if found.assigned_at is not None and not left:
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
    except KafkaException as error:
        return bool(error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART)
    except (KafkaOperationError, TimeoutError):
        return False
    return True
