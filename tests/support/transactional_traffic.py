"""Records in transactions, and commits of consumer groups that read."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Self

from confluent_kafka import Consumer, Producer, TopicPartition

from mm2slo_lab.lab_data import (
    CONSUMER_SETTINGS,
    PRODUCER_SETTINGS,
    Load,
    LoadResult,
    flush_load,
    read_records,
    send_load,
)
from mm2slo_lab.managed_process import wait_for

_TIMEOUT = 60.0
_TRANSACTION_TIMEOUT_MS = 900_000  # the brokers' default of transaction.max.timeout.ms


def produce_in_transaction(
    properties: Mapping[str, str],
    topic: str,
    load: Load,
    *,
    transactional_id: str,
    abort: bool = False,
) -> LoadResult:
    """Produce *load* in one transaction, then commit or *abort* it.

    The transaction marker takes one more offset in each written partition.
    """
    with OpenTransaction(properties, topic, transactional_id=transactional_id) as transaction:
        delivered = transaction.send(load)
        if abort:
            transaction.abort()
        else:
            transaction.commit()
    return delivered


class OpenTransaction:
    """A transaction that stays open and holds back the last stable offset.

    Leaving the context aborts a transaction that is still open.
    """

    def __init__(self, properties: Mapping[str, str], topic: str, *, transactional_id: str) -> None:
        self._topic = topic
        settings = {
            **PRODUCER_SETTINGS,
            # The default of one minute would abort it.
            "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
            **properties,
            "transactional.id": transactional_id,
        }
        self._producer = Producer(settings)
        self._producer.init_transactions(_TIMEOUT)
        self._producer.begin_transaction()
        self._open = True

    def send(self, load: Load) -> LoadResult:
        """Produce *load* in the transaction and wait until it is acknowledged."""
        delivered = LoadResult()
        send_load(self._producer, self._topic, load, delivered)
        flush_load(self._producer, self._topic, delivered)
        return delivered

    def commit(self) -> None:
        self._producer.commit_transaction(_TIMEOUT)
        self._open = False

    def abort(self) -> None:
        self._producer.abort_transaction(_TIMEOUT)
        self._open = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._open:
            self.abort()


def consume_and_commit(
    properties: Mapping[str, str], topic: str, group: str, count: int
) -> dict[int, int]:
    """Read the next *count* records of *topic* as *group*; returns the commits by partition.

    Raises TimeoutError, without a commit, when fewer arrive within a minute.
    """
    settings = {
        **CONSUMER_SETTINGS,
        **properties,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": "6000",
    }
    consumer = Consumer(settings)
    try:
        consumer.subscribe([topic])
        offsets: dict[int, int] = {}
        for message in read_records(consumer, count, [topic], _TIMEOUT):
            partition, offset = message.partition(), message.offset()
            if partition is not None and offset is not None:
                offsets[partition] = offset + 1
        positions = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        consumer.commit(offsets=positions, asynchronous=False)
        return offsets
    finally:
        consumer.close()


@contextmanager
def group_member(
    properties: Mapping[str, str],
    topic: str,
    group: str,
    commits: Mapping[int, int] | None = None,
    *,
    protocol: str = "classic",
) -> Iterator[Consumer]:
    """A consumer that stays in *group* until the block ends.

    With *commits*, it first reads all partitions and commits these.
    """
    settings = {"log_level": 2, "group.id": group, "group.protocol": protocol}
    consumer = Consumer({**properties, **settings, "enable.auto.commit": False})
    try:
        consumer.subscribe([topic])
        if commits:
            wait_for(
                lambda: (
                    not consumer.consume(5_000, 0.1) and len(consumer.assignment()) == len(commits)
                ),
                f"the partitions of {topic} for {group}",
            )
            offsets = [TopicPartition(topic, *commit) for commit in commits.items()]
            consumer.commit(offsets=offsets, asynchronous=False)
        yield consumer
    finally:
        consumer.close()


def continue_group(
    properties: Mapping[str, str], topic: str, group: str, is_enough: Callable[[list[int]], bool]
) -> list[int]:
    """Offsets of the records with which *group*, named as its protocol, continues.

    It reads, from the earliest without a commit, until the offsets are enough, then commits.
    """
    settings = {"group.id": group, "group.protocol": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**properties, **settings, "enable.auto.commit": False})
    offsets: list[int] = []

    def is_done() -> bool:
        found = consumer.poll(0.1)
        if found is not None and found.error() is None:
            offsets.append(found.offset() or 0)
        return is_enough(offsets)

    try:
        consumer.subscribe([topic])
        wait_for(is_done, f"records of {topic} for {group}", poll=0)
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return offsets
