"""Elects a leader among replicas, and leases a number to each, by membership in groups.

A group subscribes to a topic; the member that is assigned its partition 0 leads. Nothing is
committed, so the group has no offsets for MirrorMaker 2 to translate. When a leader fails, the
broker reassigns the partition after the session timeout.

`LeasedSlot` leases to each replica the lowest number that no other one holds. Each number is a
group of its own (`<prefix>.<number>`); the leader of its election holds it. A replica that starts
waits for its predecessor's number as long as the session timeout before it takes a higher one.
"""

import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError

SESSION_SECONDS = 10.0
"""Time after which the broker removes a member that died."""
_POLL_SECONDS = 0.5


class Leadership:
    """Membership in an election; with *withdraws*, only until another member leads."""

    def __init__(
        self,
        handles: HandleFactory,
        *,
        group: str,
        topic: str,
        withdraws: bool = False,
        on_problem: Callable[[KafkaOperationError], None] = lambda _problem: None,
    ) -> None:
        self._handles = handles
        self._settings = {
            "group.id": group,
            # The group is used for its assignment only; its partitions are paused.
            "auto.offset.reset": "latest",
            "session.timeout.ms": str(int(SESSION_SECONDS * 1000)),
            # A new member does not take the partition from the leader: an eager assignor would
            # revoke it in each rebalance, without a leader until it ends (KIP-429).
            "partition.assignment.strategy": "cooperative-sticky",
        }
        self._topic = topic
        self._operation = f"taking part in the election of group {group!r}"
        self._on_problem = on_problem
        self._withdraws = withdraws
        self._withdrawn = False
        self._without_lead_since = time.monotonic()
        self.leading = False

    def run(self, stopping: threading.Event) -> None:
        """Take part in the election until *stopping* is set.

        Then leaves the group, so that another replica leads without waiting for a timeout.
        """
        consumer: Consumer | None = None
        try:
            while not (stopping.is_set() or self._is_withdrawn()):
                problem = self._handles.login_problem(self._operation)
                if problem is None:
                    consumer = self._join() if consumer is None else consumer
                    self._serve(consumer, stopping)
                    continue
                self._leave(consumer)
                consumer = None
                self._on_problem(problem)
                stopping.wait(_POLL_SECONDS)
        finally:
            self._leave(consumer)

    def _join(self) -> Consumer:
        consumer = self._handles.consumer(self._settings)
        consumer.subscribe(
            [self._topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        return consumer

    def _leave(self, consumer: Consumer | None) -> None:
        self.leading = False
        if consumer is not None:
            consumer.close()

    def _is_withdrawn(self) -> bool:
        if self.leading:
            self._without_lead_since = time.monotonic()
        silent = time.monotonic() - self._without_lead_since
        return self._withdrawn or (self._withdraws and silent > 2 * SESSION_SECONDS)

    def _serve(self, consumer: Consumer, stopping: threading.Event) -> None:
        try:
            message = consumer.poll(_POLL_SECONDS)
        except KafkaException as error:
            self._report(error)
            stopping.wait(_POLL_SECONDS)
            return
        if message is not None and (problem := message.error()) is not None:
            # librdkafka has left the group by itself, so another replica may lead by now.
            if problem.code() == KafkaError._MAX_POLL_EXCEEDED:
                self.leading = False
            self._report(problem)

    def _report(self, error: KafkaError | KafkaException) -> None:
        self._on_problem(self._handles.problem(error, self._operation))

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if any(each.partition == 0 for each in partitions):
            self.leading = True
        consumer.incremental_assign(partitions)
        consumer.pause(partitions)
        self._withdrawn = self._withdraws and not self.leading

    def _revoked(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if any(each.partition == 0 for each in partitions):
            self.leading = False


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
