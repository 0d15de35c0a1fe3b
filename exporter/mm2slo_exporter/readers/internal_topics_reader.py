"""Follows internal topics of one cluster for all its flows, in one thread with one consumer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.tail_group import TailGroup
from mm2slo_kafka.tailed_topic import TailedTopic, TailState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mm2slo_exporter.collection_health import Health, Stage
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.tailed_topic import Batch, TailRecord

_BATCH = 5000
_POLL_SECONDS = 0.5
"""How late a topic is followed; records do not wait."""
_FETCH_WAIT_SECONDS = 2.0


class Subscription:
    """What one flow takes of a topic; only the reader's thread changes it."""

    def __init__(
        self,
        topic: str,
        stage: Stage,
        *,
        apply: Callable[[Sequence[TailRecord]], None],
        clear: Callable[[], None],
        read_up_to: Callable[[Mapping[int, int | None]], None] = lambda _positions: None,
        on_complete: Callable[[], None] = lambda: None,
        is_optional: bool = False,
    ) -> None:
        """*clear* drops what was applied, *read_up_to* gets the next offset of each partition.

        *on_complete* is called at each completion. An optional topic need not be authorized.
        """
        self.topic = topic
        self.stage = stage
        self.is_optional = is_optional
        self.is_complete = False
        """Whether the topic was read to the end it had at the start, or does not exist."""
        self.is_denied = False
        """Whether the user may not read it."""
        self._apply = apply
        self._clear = clear
        self._read_up_to = read_up_to
        self._on_complete = on_complete
        self._was_read = False
        self._topic_id: str | None = None
        self._next_offsets: dict[int, int] = {}

    def restart(self) -> None:
        """Drop what was read: the topic is read from its start again."""
        self.is_complete = self._was_read = False
        self._topic_id = None
        self._next_offsets.clear()
        self._clear()

    def take(self, tailed: TailedTopic, batch: Batch) -> None:
        """Take a batch; records that are read again for another flow are skipped."""
        is_other = tailed.topic_id is not None and self._topic_id not in (None, tailed.topic_id)
        if batch.restarted is not None or is_other:
            self.restart()
        self._topic_id = tailed.topic_id or self._topic_id
        if batch.records:
            following = self._next_offsets
            records = [
                each for each in batch.records if each.offset >= following.get(each.partition, 0)
            ]
            self._apply(records)
            following.update((each.partition, each.offset + 1) for each in records)
        self._read_up_to(tailed.positions)
        self._was_read |= tailed.caught_up
        was_complete = self.is_complete
        self.is_complete = self._was_read or tailed.state is TailState.ABSENT
        if self.is_complete and not was_complete:
            self._on_complete()


class InternalTopicsReader:
    """Starts with the first subscription.

    A topic that several flows follow is read once. It is read from its start again for a flow
    that follows it later, which does not affect the others.
    """

    def __init__(self, client: ClusterClient, health: Health) -> None:
        self._client = client
        self._health = health
        self._lock = threading.Lock()
        self._subscriptions: list[Subscription] = []
        self._changed: set[str] = set()
        self._is_started = False
        self._stopping = threading.Event()
        self._thread = SupervisedThread(
            Loop.INTERNALS, client.alias, self._run, self._stopping, health.record_loop_failure
        )

    def follow(self, subscription: Subscription) -> None:
        """Read a topic for a flow; does nothing if it is followed already."""
        with self._lock:
            if subscription in self._subscriptions:
                return
            self._subscriptions.append(subscription)
            self._changed.add(subscription.topic)
            is_started, self._is_started = self._is_started, True
        if not is_started:
            self._thread.start()

    def unfollow(self, subscription: Subscription) -> None:
        with self._lock:
            if subscription not in self._subscriptions:
                return
            self._subscriptions.remove(subscription)
            if all(each.topic != subscription.topic for each in self._subscriptions):
                self._changed.add(subscription.topic)

    def stop(self) -> None:
        """Stop the thread and close the consumer."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        # After a failure, the topics are read again from their start.
        with self._lock:
            subscriptions = list(self._subscriptions)
            self._changed.update(each.topic for each in subscriptions)
        for subscription in subscriptions:
            subscription.restart()
        # Only workers with exactly-once support write transactions, which may be aborted.
        group = TailGroup(
            self._client, isolation="read_committed", fetch_wait_seconds=_FETCH_WAIT_SECONDS
        )
        tailed: dict[str, TailedTopic] = {}
        try:
            while not self._stopping.is_set():
                self._poll(group, tailed)
        finally:
            group.close()

    def _poll(self, group: TailGroup, tailed: dict[str, TailedTopic]) -> None:
        with self._lock:
            subscriptions = list(self._subscriptions)
            changed, self._changed = self._changed, set()
        for topic in changed:
            if topic in tailed:
                group.remove(topic)
                del tailed[topic]
            if any(each.topic == topic for each in subscriptions):
                tailed[topic] = TailedTopic(topic)
                group.add(tailed[topic])
        batches = group.poll(_BATCH, _POLL_SECONDS)
        for subscription in subscriptions:
            batch = batches.get(subscription.topic)
            if batch is not None:
                subscription.take(tailed[subscription.topic], batch)
                self._report(subscription, tailed[subscription.topic])

    def _report(self, subscription: Subscription, tailed: TailedTopic) -> None:
        alias, stage, problem = self._client.alias, subscription.stage, tailed.problem
        subscription.is_denied = problem is not None and problem.kind is ErrorKind.AUTHORIZATION
        if problem is not None:
            if subscription.is_optional and subscription.is_denied:
                return
            self._health.record_failure(alias, stage, problem.kind, str(problem))
        elif tailed.state is not TailState.STARTING:
            self._health.record_success(alias, stage)
