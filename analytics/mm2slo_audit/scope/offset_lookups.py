"""Single records and moments that a scope needs beside the snapshots."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation

_TIMEOUT: Final = 30.0
_MOST_MOMENTS: Final = 200


def first_timestamps(
    client: ClusterClient,
    ranges: Mapping[TopicPartition, tuple[int, int]],
    isolation: Isolation = "read_uncommitted",
) -> dict[TopicPartition, int]:
    """Epoch ms of the first record in [offset, end) of each partition; left out where none is.

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


def offsets_at(
    client: ClusterClient, moments: Mapping[TopicPartition, int], *, at_least: bool = False
) -> dict[TopicPartition, int]:
    """The first offset at or after a moment (epoch ms) of its own for each partition.

    Of very many moments neighbours are taken together: by the earliest, so that offsets may be too
    low, or with *at_least* by the latest, so that they may be too high. Raises KafkaOperationError.
    """
    by_moment: defaultdict[int, list[TopicPartition]] = defaultdict(list)
    ordered = sorted(moments.items(), key=lambda item: item[1])
    width = len(ordered) // _MOST_MOMENTS + 1
    for start in range(0, len(ordered), width):
        group = ordered[start : start + width]
        moment = group[-1 if at_least else 0][1]
        by_moment[moment] += [key for key, _moment in group]
    found: dict[TopicPartition, int] = {}
    for moment, keys in by_moment.items():
        found |= client.offsets_at(keys, max(0, moment) / 1000).offsets
    return found
