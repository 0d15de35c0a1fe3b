"""A side is unreadable when all of its partitions failed, although the request succeeded."""

from collections.abc import Sequence

import pytest

from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.readers.flow_reader import SideReader
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.partition_offsets import Isolation, OffsetReading

PARTITION, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Answering:
    """Returns the same result for each request."""

    alias = "us"

    def __init__(
        self, offsets: dict[TopicPartition, int], errors: dict[TopicPartition, ErrorKind]
    ) -> None:
        self._answer = OffsetReading(offsets, errors, 1.0, 2.0)

    def end_offsets(
        self,
        _partitions: Sequence[TopicPartition],
        _isolation: Isolation = "read_uncommitted",
        _timeout: float = 1.0,
    ) -> OffsetReading:
        return self._answer

    def start_offsets(
        self, _partitions: Sequence[TopicPartition], _timeout: float = 1.0
    ) -> OffsetReading:
        return self._answer


@pytest.mark.parametrize(
    ("offsets", "errors", "readable"),
    [
        ({PARTITION: 5, OTHER: 6}, {}, True),
        ({PARTITION: 5}, {OTHER: ErrorKind.TIMEOUT}, True),
        ({}, {PARTITION: ErrorKind.TIMEOUT, OTHER: ErrorKind.TIMEOUT}, False),
        ({}, {PARTITION: ErrorKind.AUTHORIZATION, OTHER: ErrorKind.AUTHORIZATION}, False),
        ({}, {PARTITION: ErrorKind.UNKNOWN_TOPIC, OTHER: ErrorKind.UNKNOWN_TOPIC}, True),
    ],
)
def test_side_is_unreadable_when_all_partitions_failed(
    offsets: dict[TopicPartition, int], errors: dict[TopicPartition, ErrorKind], *, readable: bool
) -> None:
    health = CollectionHealth(lambda: 10.0)
    reader = SideReader(Answering(offsets, errors), health, starts_every=30.0)
    reader.read([PARTITION, OTHER])
    assert reader.readable is readable
    counted = {
        reason: count
        for (_alias, stage, reason), count in health.report().errors.items()
        if stage is CollectionStage.END_OFFSETS and count
    }
    assert set(counted) == set(errors.values())
