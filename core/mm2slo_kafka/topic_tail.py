"""Reads one topic to its end offset, then follows it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mm2slo_kafka.tail_group import TailGroup
from mm2slo_kafka.tailed_topic import Batch, TailedTopic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.kafka_errors import KafkaOperationError
    from mm2slo_kafka.partition_offsets import Isolation
    from mm2slo_kafka.tailed_topic import Start, TailState


class TopicTail:
    """One topic, or one partition of it, read with a consumer of its own; see `TailGroup`."""

    def __init__(
        self,
        client: ClusterClient,
        topic: str,
        *,
        partition: int | None = None,
        start: Start = "start",
        isolation: Isolation = "read_uncommitted",
        headers: bool = False,
        refresh_seconds: float = 5.0,
    ) -> None:
        self.topic = topic
        self._tailed = TailedTopic(topic, start=start, partition=partition)
        self._group = TailGroup(
            client, isolation=isolation, headers=headers, refresh_seconds=refresh_seconds
        )
        self._group.add(self._tailed)

    @property
    def problem(self) -> KafkaOperationError | None:
        """Why it cannot be read; None after a successful request."""
        return self._tailed.problem

    @property
    def state(self) -> TailState:
        return self._tailed.state

    @property
    def caught_up(self) -> bool:
        """Whether each partition was read to the end offset it had at the start."""
        return self._tailed.caught_up

    @property
    def position(self) -> Mapping[int, int | None]:
        """The next offset per partition; None before its broker's first response."""
        return dict(self._tailed.positions)

    @property
    def topic_id(self) -> str | None:
        """The id of the topic; None on brokers without topic ids (before 2.8)."""
        return self._tailed.topic_id

    def poll(self, max_records: int = 1000, timeout: float = 1.0) -> Batch:
        """Up to *max_records* records; waits up to *timeout* seconds for the first.

        Returns early, without records, when the topic was looked up or an end was reached.
        """
        deadline = time.monotonic() + timeout
        while True:
            remaining = max(deadline - time.monotonic(), 0.0)
            batch = self._group.poll(max_records, remaining).get(self.topic)
            if batch is not None:
                return batch
            if time.monotonic() >= deadline:
                return Batch([], None, self.problem)

    def close(self) -> None:
        """Close the consumer; the tail cannot be used afterwards."""
        self._group.close()
