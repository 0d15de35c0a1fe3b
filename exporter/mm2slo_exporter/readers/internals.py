"""Follows the internal topics of one flow from their start, in one thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_exporter.health import Health, Stage
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_exporter.threads import end
from mm2slo_kafka.tail import TailState, TopicTail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_exporter.observation import InternalsView
    from mm2slo_kafka.client import ClusterClient

_BATCH = 5000
_IDLE_SECONDS = 0.2

_STAGES = {
    InternalTopic.OFFSET_SYNCS: Stage.OFFSET_SYNCS,
    InternalTopic.COMMITTED_OFFSETS: Stage.COMMITTED_OFFSETS,
    InternalTopic.CHECKPOINTS: Stage.CHECKPOINTS,
    InternalTopic.STATUS: Stage.STATUS,
    InternalTopic.CONNECTOR_CONFIGS: Stage.CONNECTOR_CONFIGS,
}


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """Where an internal topic is read from, and how."""

    kind: InternalTopic
    client: ClusterClient
    topic: str
    reads_committed: bool = False


class InternalsReader:
    """Feeds the store of one flow; `view` is complete up to the moment of the call."""

    def __init__(
        self, name: str, places: Sequence[TopicPlace], store: InternalsStore, health: Health
    ) -> None:
        self._places = tuple(places)
        self._store = store
        self._health = health
        self._tails: dict[InternalTopic, TopicTail] = {}
        self._waiting = tuple(_title(place) for place in places)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"internals-{name}", daemon=True)

    def start(self) -> None:
        """Begin to read; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close the consumers."""
        self._stopping.set()
        end(self._thread)

    def view(self) -> InternalsView:
        """What is known now, and which topics have not been read to their end yet."""
        return self._store.view(self._waiting)

    def _run(self) -> None:
        self._tails = {
            place.kind: TopicTail(
                place.client,
                place.topic,
                isolation="read_committed" if place.reads_committed else "read_uncommitted",
            )
            for place in self._places
        }
        try:
            while not self._stopping.is_set():
                self._poll_all()
        finally:
            for tail in self._tails.values():
                tail.close()

    def _poll_all(self) -> None:
        """Poll each topic without waiting; wait only when none of them had anything."""
        busy = False
        for place in self._places:
            tail = self._tails[place.kind]
            # A topic that is not known yet is asked for; its answer may take a moment.
            patience = 0.0 if tail.state is TailState.READING else 0.05
            busy |= self._poll(place, tail, patience)
        self._waiting = tuple(
            _title(place) for place in self._places if not _complete(self._tails[place.kind])
        )
        if not busy:
            self._stopping.wait(_IDLE_SECONDS)

    def _poll(self, place: TopicPlace, tail: TopicTail, patience: float) -> bool:
        batch = tail.poll(_BATCH, patience)
        stage = _STAGES[place.kind]
        if batch.restarted is not None:
            self._store.clear(place.kind)
        if batch.records:
            self._store.apply(place.kind, batch.records)
        if batch.problem is not None:
            kind, message = str(batch.problem.kind), str(batch.problem)
            self._health.failed(place.client.alias, stage, kind, message)
        elif tail.state is not TailState.STARTING:
            self._health.succeeded(place.client.alias, stage)
        return bool(batch.records)


def _complete(tail: TopicTail) -> bool:
    return tail.caught_up or tail.state is TailState.ABSENT


def _title(place: TopicPlace) -> str:
    return f"{place.topic} on {place.client.alias}"
