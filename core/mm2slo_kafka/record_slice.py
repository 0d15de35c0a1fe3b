"""Reads complete records of one partition."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.first_records import take_available
from mm2slo_kafka.tailed_topic import TailRecord

if TYPE_CHECKING:
    from mm2slo_kafka.cluster_client import ClusterClient


_SETTINGS: Final = {
    "enable.partition.eof": "true",
    "isolation.level": "read_uncommitted",
    # Records that retention has removed meanwhile are skipped.
    "auto.offset.reset": "earliest",
    "queued.min.messages": "1000",
    "queued.max.messages.kbytes": "4096",
}
_TAKEN_AT_ONCE = 500
_TIMEOUT_SECONDS = 20.0


def read_slice(
    client: ClusterClient,
    partition: TopicPartition,
    start: int,
    max_records: int,
) -> list[TailRecord]:
    """Up to *max_records* records from offset *start*; fewer at the end of the partition.

    Raises KafkaOperationError when the cluster refuses, or returns no further record for 20
    seconds.
    """
    with closing(read_records(client, partition, start)) as records:
        return list(islice(records, max_records))


def read_records(
    client: ClusterClient,
    partition: TopicPartition,
    start: int,
) -> Generator[TailRecord]:
    """The records from offset *start* to the end of the partition; to be closed.

    Raises KafkaOperationError as `read_slice`.
    """
    operation = f"reading {partition}"
    client.handles.check_login(operation)
    with client.handles.errors(operation):
        consumer = client.handles.consumer(_SETTINGS, statistics=False)
        try:
            consumer.assign([RawPartition(partition.topic, partition.partition, start)])
            deadline = time.monotonic() + _TIMEOUT_SECONDS
            while (left := deadline - time.monotonic()) > 0:
                for message in take_available(consumer, _TAKEN_AT_ONCE, left):
                    error = message.error()
                    if error is None:
                        yield TailRecord.of(message, with_headers=True)
                        deadline = time.monotonic() + _TIMEOUT_SECONDS
                    elif error.code() == KafkaError._PARTITION_EOF:
                        return
                    elif not error.retriable():
                        raise client.handles.problem(error, operation)
            raise TimeoutError(f"no answer in {_TIMEOUT_SECONDS:g} s")
        finally:
            consumer.close()
