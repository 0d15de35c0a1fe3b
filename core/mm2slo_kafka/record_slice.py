"""Reads a few complete records of one partition."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, cast

from confluent_kafka import KafkaError
from confluent_kafka import TopicPartition as RawPartition

from mm2slo_kafka.available_messages import take_available
from mm2slo_kafka.tailed_topic import TailRecord

if TYPE_CHECKING:
    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation
    from mm2slo_kafka.tailed_topic import Headers

_SETTINGS: Final = {
    "enable.partition.eof": "true",
    # Records that retention has removed meanwhile are skipped.
    "auto.offset.reset": "earliest",
    "queued.min.messages": "1000",
}


def read_slice(
    client: ClusterClient,
    partition: TopicPartition,
    start: int,
    max_records: int,
    *,
    isolation: Isolation = "read_uncommitted",
    timeout: float = 20.0,
) -> list[TailRecord]:
    """Up to *max_records* records from offset *start*; fewer at the end of the partition.

    Raises KafkaOperationError when the cluster refuses or returns no record within *timeout*
    seconds.
    """
    found: list[TailRecord] = []
    operation = f"reading {partition}"
    with client.handles.errors(operation):
        consumer = client.handles.consumer(
            {**_SETTINGS, "isolation.level": isolation}, statistics=False
        )
        try:
            consumer.assign([RawPartition(partition.topic, partition.partition, start)])
            deadline = time.monotonic() + timeout
            while len(found) < max_records:
                if (left := deadline - time.monotonic()) <= 0:
                    raise TimeoutError(f"no answer in {timeout:g} s")
                for message in take_available(consumer, max_records - len(found), left):
                    error = message.error()
                    if error is None:
                        kind, timestamp_ms = message.timestamp()
                        found.append(
                            TailRecord(
                                partition.partition,
                                cast("int", message.offset()),
                                timestamp_ms if kind else None,
                                message.key(),
                                message.value(),
                                cast("Headers", message.headers() or []),
                            )
                        )
                    elif error.code() == KafkaError._PARTITION_EOF:
                        return found
                    elif not error.retriable():
                        raise client.handles.problem(error, operation)
        finally:
            consumer.close()
    return found
