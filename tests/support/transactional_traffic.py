"""Records in transactions, and commits of consumer groups that read."""

from collections.abc import Mapping
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
    properties: Mapping[str, str], topic: str, group: str, count: int, *, timeout: float = _TIMEOUT
) -> dict[int, int]:
    """Read the next *count* records of *topic* as *group*; returns the commits by partition.

    Raises TimeoutError, without a commit, when fewer arrive within *timeout* seconds.
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
        for message in read_records(consumer, count, [topic], timeout):
            partition, offset = message.partition(), message.offset()
            if partition is not None and offset is not None:
                offsets[partition] = offset + 1
        positions = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        consumer.commit(offsets=positions, asynchronous=False)
        return offsets
    finally:
        consumer.close()
