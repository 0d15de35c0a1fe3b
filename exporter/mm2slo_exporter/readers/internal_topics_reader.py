"""Follows internal topics of one cluster for all its flows, in one thread with one consumer."""

import threading
from collections.abc import Callable, Mapping, Sequence

from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.tailed_topic import Start, TailBatch, TailedTopic, TailRecord, TailState
from mm2slo_kafka.topic_tail import SharedTail, TailGroup, TakenOffsets

_BATCH = 5000

_POLL_SECONDS = 0.5
"""How late a topic is followed; records do not wait."""
_FETCH_WAIT_SECONDS = 2.0


class Subscription:
    """What one flow takes of a topic; only the reader's thread changes it."""

    start: Start = "start"

    def __init__(
        self,
        topic: str,
        stage: CollectionStage,
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
        self.was_absent = False
        """Whether the topic did not exist before: an earlier exporter cannot have written to it."""
        self._apply = apply
        self._clear = clear
        self._read_up_to = read_up_to
        self._on_complete = on_complete
        self._was_read = False
        self._taken = TakenOffsets()

    def restart(self) -> None:
        """Drop what was read: the topic is read from its start again."""
        self.is_complete = self._was_read = self.was_absent = False
        self._taken.clear()
        self._clear()

    def take(self, tailed: TailedTopic, batch: TailBatch) -> None:
        """Take a batch; records that are read again for another flow are skipped."""
        new = self._taken.new_of(tailed, batch)
        if new.restarted is not None:
            self.is_complete = self._was_read = False
            self._clear()
        if new.records:
            self._apply(new.records)
        self._read_up_to(tailed.positions)
        self._was_read |= tailed.caught_up
        was_complete = self.is_complete
        is_absent = tailed.state is TailState.ABSENT
        self.was_absent |= is_absent
        self.is_complete = self._was_read or is_absent
        if self.is_complete and not was_complete:
            self._on_complete()


class InternalTopicsReader:
    """Starts with the first subscription.

    A topic that is followed later does not affect the others.
    """

    def __init__(self, client: ClusterClient, health: CollectionHealth) -> None:
        self._client = client
        self._health = health
        self._lock = threading.Lock()
        self._shared: SharedTail[Subscription] = SharedTail()
        self._is_started = False
        self._stopping = threading.Event()
        self._thread = SupervisedThread(
            Loop.INTERNALS, client.alias, self._run, self._stopping, health.record_loop_failure
        )

    def follow(self, subscription: Subscription) -> None:
        """Read a topic for a flow; does nothing if it is followed already."""
        self._shared.follow(subscription)
        with self._lock:
            is_started, self._is_started = self._is_started, True
        if not is_started:
            self._thread.start()

    def unfollow(self, subscription: Subscription) -> None:
        self._shared.unfollow(subscription)

    def stop(self) -> None:
        """Stop the thread and close the consumer."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        # Only workers with exactly-once support (KIP-618) write transactions, which may be aborted;
        # the commits in an aborted one never took effect.
        group = TailGroup(
            self._client, isolation="read_committed", fetch_wait_seconds=_FETCH_WAIT_SECONDS
        )
        # After a failure, the topics are read again from their start.
        for subscription in self._shared.open(group):
            subscription.restart()
        try:
            while not self._stopping.is_set():
                for subscription, tailed in self._shared.poll(_BATCH, _POLL_SECONDS):
                    self._report(subscription, tailed)
        finally:
            group.close()

    def _report(self, subscription: Subscription, tailed: TailedTopic) -> None:
        alias, stage, problem = self._client.alias, subscription.stage, tailed.problem
        subscription.is_denied = problem is not None and problem.kind is ErrorKind.AUTHORIZATION
        if problem is not None:
            if subscription.is_optional and subscription.is_denied:
                return
            self._health.record_failure(alias, stage, problem.kind, str(problem))
        elif tailed.state is not TailState.STARTING:
            self._health.record_success(alias, stage)
