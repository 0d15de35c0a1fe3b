"""Lookups of single records and of offsets by time."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation

_TIMEOUT: Final = 30.0
_MAX_TIMES: Final = 200


def read_first_timestamps(
    client: ClusterClient,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    isolation: Isolation = "read_uncommitted",
) -> dict[TopicPartition, int]:
    """Epoch ms of the first record in [offset, end) of each partition, if there is one.

    Raises KafkaOperationError.
    """
    wanted = {key: found for key, found in ranges.items() if found[0] < found[1]}
    if not wanted:
        return {}
    answer = client.first_records(wanted, isolation, _TIMEOUT)
    return {
        key: record.timestamp_ms
        for key, record in answer.found.items()
        if record is not None and record.timestamp_ms is not None
    }


def read_offsets_at(
    client: ClusterClient, timestamps: Mapping[TopicPartition, int], *, at_least: bool = False
) -> dict[TopicPartition, int]:
    """The first offset at or after a timestamp (epoch ms) for each partition.

    To limit requests, neighbouring timestamps are combined to the earliest (offsets may be too
    low), or with *at_least* to the latest (offsets may be too high). Raises KafkaOperationError.
    """
    by_timestamp: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    ordered = sorted(timestamps.items(), key=lambda item: item[1])
    width = len(ordered) // _MAX_TIMES + 1
    for start in range(0, len(ordered), width):
        group = ordered[start : start + width]
        timestamp = group[-1 if at_least else 0][1]
        by_timestamp[timestamp] += [key for key, _timestamp in group]
    found: dict[TopicPartition, int] = {}
    for timestamp, keys in by_timestamp.items():
        found |= client.offsets_at(keys, max(0, timestamp) / 1000).offsets
    return found
