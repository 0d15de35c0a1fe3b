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
_SETTLE_SECONDS: Final = 5.0


def read_to_end(
    client: ClusterClient,
    topic: str,
    *,
    start: Start = "start",
    isolation: Isolation = "read_uncommitted",
    is_enough: Callable[[Mapping[int, int | None]], bool] = lambda _positions: True,
) -> Iterator[TailRecord]:
    """The records of *topic* in order; none if it does not exist.

    *is_enough* gets the offset up to which each partition was read; reading goes on until it is
    true, for 5 seconds at most. Raises KafkaOperationError if reading is denied, and it or
    TimeoutError if the cluster returns nothing for 20 seconds.
    """
    tail = TopicTail(client, topic, start=start, isolation=isolation)
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    settled: float | None = None
    try:
        while True:
            batch = tail.poll(_BATCH, 0.2)
            if batch.records:
                deadline = time.monotonic() + _TIMEOUT_SECONDS
                yield from batch.records
            if tail.state is TailState.ABSENT:
                return
            if tail.caught_up:
                settled = settled or time.monotonic() + _SETTLE_SECONDS
                if is_enough(tail.position) or time.monotonic() > settled:
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
