"""Reads the newest stretch of the timeline back into a flow's state, once, at start."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.records import DecodeError
from mm2slo_core.retention import SavedLoss
from mm2slo_core.timeline_record import Side, WatermarkRecord
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.tail import TailState, TopicTail

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from mm2slo_core.timeline_record import PollTimes
    from mm2slo_core.topology import Flow
    from mm2slo_kafka.client import ClusterClient

READ_BACK_SECONDS = 3600.0
"""What is older is told by reading the waiting record itself."""
_PATIENCE_SECONDS = 20.0
_BATCH = 5000


class Remembered(NamedTuple):
    """One source partition at one poll of an earlier process."""

    partition: TopicPartition
    topic_id: str | None
    end: int
    times: PollTimes
    loss: SavedLoss | None


def read_back(
    client: ClusterClient,
    topic: str,
    flow: Flow,
    stopping: threading.Event,
    malformed: Callable[[str], None],
) -> Iterator[Remembered]:
    """Source ends of the last hour, in order. Ends at the topic's end, or when patience does."""
    tail = TopicTail(client, topic, start=time.time() - READ_BACK_SECONDS)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        while not stopping.is_set() and time.monotonic() < deadline:
            batch = tail.poll(_BATCH, 0.2)
            if batch.problem is not None:
                # The cluster is away: the first round must not wait for it. What waits is then
                # as old as its own record says.
                return
            for raw in batch.records:
                try:
                    record = WatermarkRecord.decode(raw.value)
                except DecodeError as error:
                    malformed(error.reason)
                    continue
                if record.flow == flow and record.side is Side.SOURCE:
                    yield from _remembered(record)
            if tail.caught_up or tail.state is TailState.ABSENT:
                return
    finally:
        tail.close()


def _remembered(record: WatermarkRecord) -> Iterator[Remembered]:
    for index, number in enumerate(record.partitions):
        lost = record.lost[index] if record.lost else None
        judged = record.judged_to[index] if record.judged_to else None
        yield Remembered(
            partition=TopicPartition(record.topic, number),
            topic_id=record.topic_id,
            end=record.ends[index],
            times=record.times,
            loss=None if lost is None or judged is None else SavedLoss(lost, judged),
        )
