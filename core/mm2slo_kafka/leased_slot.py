"""Leases a number to each replica of a program: the lowest one that no other replica holds.

Each number is a consumer group of its own (`<prefix>.<number>`); the leader of its election holds
the number. A replica that dies is removed by the broker after the session timeout; one that starts
waits that long for its predecessor's number before it takes a higher one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_kafka.leadership import SESSION_SECONDS, Leadership

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from mm2slo_kafka.cluster_client import ClusterClient

_RETRY_SECONDS = 0.5
_TIMEOUT_SECONDS = 10.0
_FREE = frozenset({"empty", "dead"})


class LeasedSlot:
    """One replica's number; the groups `<prefix>.<number>` subscribe to *topic*.

    *prepare* creates the topic if it is missing. Raises KafkaOperationError.
    """

    def __init__(
        self,
        client: ClusterClient,
        *,
        prefix: str,
        topic: str,
        prepare: Callable[[threading.Event], object],
        patience_seconds: float = SESSION_SECONDS + 3,
        on_problem: Callable[[KafkaOperationError], None] = lambda _problem: None,
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._topic = topic
        self._prepare = prepare
        self._patience = patience_seconds
        self._on_problem = on_problem
        self._held: tuple[int, Leadership] | None = None

    @property
    def number(self) -> int | None:
        """The number, while this replica holds one."""
        if self._held is None:
            return None
        number, election = self._held
        return number if election.leading else None

    def run(self, stopping: threading.Event) -> None:
        """Lease a number until *stopping* is set; another one if it was taken meanwhile."""
        patient_until = time.monotonic() + self._patience
        while not stopping.is_set():
            try:
                self._prepare(stopping)
                free = self._lowest_free()
            except KafkaOperationError as problem:
                self._on_problem(problem)
                free = None
            if free is None or (free > 0 and time.monotonic() < patient_until):
                stopping.wait(_RETRY_SECONDS)
                continue
            election = Leadership(
                self._client.handles,
                group=f"{self._prefix}.{free}",
                topic=self._topic,
                withdraws=True,
                on_problem=self._on_problem,
            )
            self._held = (free, election)
            election.run(stopping)

    def _lowest_free(self) -> int:
        groups = self._client.groups(_TIMEOUT_SECONDS).groups
        taken = {listing.group for listing in groups if listing.state not in _FREE}
        number = 0
        while f"{self._prefix}.{number}" in taken:
            number += 1
        return number
