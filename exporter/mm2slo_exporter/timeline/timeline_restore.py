"""Reads the last hour of the timeline at start, to restore a flow's state."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.records import DecodeError
from mm2slo_core.timeline_record import Side, WatermarkRecord
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.kafka_errors import CLUSTER_AWAY
from mm2slo_kafka.tailed_topic import TailState
from mm2slo_kafka.topic_tail import TopicTail

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from mm2slo_core.timeline_record import PollTimes
    from mm2slo_core.topology import Flow
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.kafka_errors import KafkaOperationError

RESTORE_SECONDS = 3600.0
"""The age of older backlog is read from its own first record."""
_BATCH = 5000


class RestoredPoll(NamedTuple):
    """One source partition in one poll of an earlier process."""

    partition: TopicPartition
    topic_id: str | None
    end: int
    times: PollTimes


def read_timeline(
    client: ClusterClient,
    topic: str,
    flow: Flow,
    stopping: threading.Event,
    malformed: Callable[[str], None],
    *,
    failed: Callable[[KafkaOperationError], None],
) -> Iterator[RestoredPoll]:
    """Source end offsets of the last hour, in order, up to the topic's end.

    Waits for an unreachable cluster. Ends without polls if
    the topic cannot be read, for example without permission.
    """
    tail = TopicTail(client, topic, start=time.time() - RESTORE_SECONDS)
    try:
        while not stopping.is_set():
            batch = tail.poll(_BATCH, 0.2)
            if batch.problem is not None:
                failed(batch.problem)
                if batch.problem.kind not in CLUSTER_AWAY:
                    return
            for raw in batch.records:
                try:
                    record = WatermarkRecord.decode(raw.value)
                except DecodeError as error:
                    malformed(error.reason)
                    continue
                if record.flow == flow and record.side is Side.SOURCE:
                    yield from _polls(record)
            if tail.caught_up or tail.state is TailState.ABSENT:
                return
    finally:
        tail.close()


def _polls(record: WatermarkRecord) -> Iterator[RestoredPoll]:
    for index, number in enumerate(record.partitions):
        yield RestoredPoll(
            partition=TopicPartition(record.topic, number),
            topic_id=record.topic_id,
            end=record.ends[index],
            times=record.times,
        )
