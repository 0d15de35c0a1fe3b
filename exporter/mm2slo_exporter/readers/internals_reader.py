"""Follows the internal topics of one flow, in one thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_exporter.collection_health import Health, Stage
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.kafka_errors import ErrorKind
from mm2slo_kafka.topic_tail import TailState, TopicTail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_exporter.observation import InternalsView
    from mm2slo_kafka.cluster_client import ClusterClient

_BATCH = 5000
_IDLE_SECONDS = 0.2

_STAGES = {
    InternalTopic.OFFSET_SYNCS: Stage.OFFSET_SYNCS,
    InternalTopic.COMMITTED_OFFSETS: Stage.COMMITTED_OFFSETS,
    InternalTopic.CHECKPOINTS: Stage.CHECKPOINTS,
    InternalTopic.STATUS: Stage.STATUS,
    InternalTopic.CONNECTOR_CONFIGS: Stage.CONNECTOR_CONFIGS,
    InternalTopic.HEARTBEAT_CONFIGS: Stage.CONNECTOR_CONFIGS,
}


@dataclass(frozen=True, slots=True)
class InternalTopicLocation:
    """Where and how an internal topic is read."""

    kind: InternalTopic
    client: ClusterClient
    topic: str
    after: InternalTopic | None = None
    """The topic that must have been read to its end before."""
    optional: bool = False
    """Nothing waits for it, and it need not be authorized."""


class InternalsReader:
    """Feeds the store of one flow; `view` is complete up to the time of the call."""

    def __init__(
        self,
        name: str,
        locations: Sequence[InternalTopicLocation],
        store: InternalsStore,
        health: Health,
    ) -> None:
        self._locations = tuple(locations)
        self._store = store
        self._health = health
        self._tails: dict[InternalTopic, TopicTail] = {}
        self._waiting = self._all_required()
        self._stopping = threading.Event()
        self._thread = SupervisedThread(
            Loop.INTERNALS,
            name,
            self._run,
            stopping=self._stopping,
            on_failure=health.record_loop_failure,
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and close the consumers."""
        self._stopping.set()
        self._thread.join()

    def view(self) -> InternalsView:
        """The current state, and the topics that have not been read to their end yet."""
        return self._store.view(self._waiting)

    def _run(self) -> None:
        # After a failure, the topics are read again from their start.
        self._waiting = self._all_required()
        for location in self._locations:
            self._store.clear(location.kind)
        self._tails = {
            # Only workers with exactly-once support write transactions, which may be aborted.
            location.kind: TopicTail(location.client, location.topic, isolation="read_committed")
            for location in self._locations
        }
        try:
            while not self._stopping.is_set():
                self._poll_all()
        finally:
            for tail in self._tails.values():
                tail.close()

    def _all_required(self) -> tuple[str, ...]:
        return tuple(_title(location) for location in self._locations if not location.optional)

    def _poll_all(self) -> None:
        """Poll each topic without waiting; sleep only when none had records."""
        busy = False
        for location in self._locations:
            if location.after is not None and not _complete(self._tails[location.after]):
                continue
            tail = self._tails[location.kind]
            # Describing a topic that is not being read yet takes a moment.
            timeout = 0.0 if tail.state is TailState.READING else 0.05
            busy |= self._poll(location, tail, timeout)
        self._waiting = tuple(
            _title(location)
            for location in self._locations
            if not (location.optional or _complete(self._tails[location.kind]))
        )
        if not busy:
            self._stopping.wait(_IDLE_SECONDS)

    def _poll(self, location: InternalTopicLocation, tail: TopicTail, timeout: float) -> bool:
        batch = tail.poll(_BATCH, timeout)
        stage = _STAGES[location.kind]
        if batch.restarted is not None:
            self._store.clear(location.kind)
        if batch.records:
            self._store.apply(location.kind, batch.records)
        self._store.read_up_to(location.kind, tail.position)
        if batch.problem is not None:
            if location.optional and batch.problem.kind is ErrorKind.AUTHORIZATION:
                return False
            kind, message = str(batch.problem.kind), str(batch.problem)
            self._health.record_failure(location.client.alias, stage, kind, message)
        elif tail.state is not TailState.STARTING:
            self._health.record_success(location.client.alias, stage)
        return bool(batch.records)


def _complete(tail: TopicTail) -> bool:
    return tail.caught_up or tail.state is TailState.ABSENT


def _title(location: InternalTopicLocation) -> str:
    return f"{location.topic} on {location.client.alias}"
