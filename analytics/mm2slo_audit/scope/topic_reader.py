"""Reads a topic up to its current end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.tailed_topic import TailState
from mm2slo_kafka.topic_tail import TopicTail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.partition_offsets import Isolation
    from mm2slo_kafka.tailed_topic import Start, TailRecord

_TIMEOUT_SECONDS: Final = 20.0
_BATCH: Final = 10_000


def read_to_end(
    client: ClusterClient,
    topic: str,
    *,
    start: Start = "start",
    isolation: Isolation = "read_uncommitted",
    on_end: Callable[[Mapping[int, int | None]], None] = lambda _positions: None,
) -> Iterator[TailRecord]:
    """The records of *topic* in order; none if it does not exist.

    *on_end* gets the offset up to which each partition was read. Raises KafkaOperationError if
    reading is denied, and it or TimeoutError if the cluster returns nothing for 20 seconds.
    """
    tail = TopicTail(client, topic, start=start, isolation=isolation)
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    try:
        while True:
            batch = tail.poll(_BATCH, 0.2)
            if batch.records:
                deadline = time.monotonic() + _TIMEOUT_SECONDS
                yield from batch.records
            if tail.caught_up or tail.state is TailState.ABSENT:
                on_end(tail.position)
                return
            denied = batch.problem is not None and batch.problem.kind is ErrorKind.AUTHORIZATION
            if batch.problem is not None and (denied or time.monotonic() > deadline):
                raise batch.problem
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"no progress reading topic {topic!r} on cluster {client.alias} for"
                    f" {_TIMEOUT_SECONDS:g} s"
                )
    finally:
        tail.close()
