"""Reads metadata of one cluster: topics, ids, settings, consumer groups.

Each stage has its own interval and fails alone; the view keeps what was read last.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_exporter.collection_health import Health, Stage
from mm2slo_exporter.observation import ClusterView
from mm2slo_exporter.readers.group_reader import GroupReader
from mm2slo_exporter.readers.topic_movement import TopicMovement
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mm2slo_kafka.cluster_client import ClusterClient

_RETENTION = frozenset({"cleanup.policy", "retention.ms", "retention.bytes"})
_NEW_TOPICS_SECONDS: Final = 4.0
"""Between listings of topics; with a round of offsets, new ones are read within five seconds."""
_MANY_TOPICS: Final = 2_000
_CPU_SHARE: Final = 0.02
"""Of a core, for listings of more topics."""
_CLIENT_CPU: Final = 1.3
"""CPU time of a listing with librdkafka's threads, per CPU time of the calling one (measured)."""
_PAUSE_SECONDS = 0.5
"""Until the next groups are read, so that other stages are not late."""


@dataclass(frozen=True, slots=True)
class ReadIntervals:
    """Seconds between two successful reads, by stage."""

    topics: float
    """Of ids; topics are listed more often (`listing_interval`)."""
    topic_configs: float
    groups: float
    members: float | None
    """Of the members of each group; None: not read."""


def listing_interval(topics: int, cpu: float, longest: float) -> float:
    """Seconds between listings of *topics* topics, the last of which took *cpu* seconds.

    *longest*: as configured, for up to 2,000 topics.
    """
    often = min(_NEW_TOPICS_SECONDS, longest)
    return often if topics <= _MANY_TOPICS else max(often, cpu * _CLIENT_CPU / _CPU_SHARE)


class WatchScope(Protocol):
    """The topics and groups of a cluster to read."""

    def topics_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Topics whose ids and settings are read."""

    def topics_changed(self, alias: str) -> None:
        """Topics or partitions of the cluster were added or removed."""

    def groups_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Groups whose offsets are read: of *existing*, and those with a checkpoint."""


class ClusterReader:
    """One thread per cluster; `view` is replaced, never changed in place."""

    def __init__(
        self,
        client: ClusterClient,
        intervals: ReadIntervals,
        watch_scope: WatchScope,
        health: Health,
        *,
        clock: Callable[[], float] = time.time,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self._client = client
        self._cpu_clock = cpu_clock
        self._listed_every = listing_interval(0, 0.0, intervals.topics)
        self._intervals = intervals
        self._watch_scope = watch_scope
        self._health = health
        self._clock = clock
        self._due: dict[Stage, float] = {}
        self._wanted: tuple[str, ...] = ()
        self._reads_all_ids = True
        self.movement = TopicMovement()
        self._groups = GroupReader(
            client,
            watch_scope.groups_of,
            health,
            every=intervals.groups,
            members_every=intervals.members,
            clock=clock,
        )
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = SupervisedThread(
            Loop.CLUSTER, client.alias, self._run, self._stopping, health.record_loop_failure
        )
        self.view = ClusterView()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; waits briefly for a request in progress."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.read_due()
            soonest = min(self._due.values(), default=0.0)
            self._wake.wait(max(0.05, min(soonest - self._clock(), 5.0)))

    def read_due(self) -> None:
        """Read each stage that is due."""
        listed = self.view.topics
        self._attempt(Stage.TOPICS, self._listed_every, self._read_topics)
        if self.view.topics_read_at is None:
            return
        self._update_wanted()
        self._attempt(Stage.TOPIC_IDS, self._intervals.topics, self._read_topic_ids)
        if self.view.topics is not listed:
            self._watch_scope.topics_changed(self._client.alias)
        self._attempt(Stage.GROUPS, self._intervals.groups, self._read_groups)
        self._attempt(Stage.TOPIC_CONFIGS, self._intervals.topic_configs, self._read_configs)

    def _update_wanted(self) -> None:
        """Make the topic stages due when topics were added."""
        wanted = tuple(self._watch_scope.topics_of(self._client.alias, self.view.topics))
        if not set(self._wanted).issuperset(wanted):
            for stage in (Stage.TOPIC_IDS, Stage.TOPIC_CONFIGS):
                self._due.pop(stage, None)
        self._wanted = wanted

    def _attempt(self, stage: Stage, every: float, read: Callable[[], None]) -> None:
        started = self._clock()
        if self._stopping.is_set() or started < self._due.get(stage, 0.0):
            return
        self._due[stage] = started + every
        try:
            with self._health.stage(self._client.alias, stage):
                read()
        except KafkaOperationError:
            # A failed stage is retried soon, but not in a tight loop.
            self._due[stage] = started + min(every, 5.0)

    def _read_topics(self) -> None:
        cpu = self._cpu_clock()
        listing = self._client.topics()
        hidden = self._hidden(listing.partition_counts)
        errors = {**listing.errors, **dict.fromkeys(hidden, ErrorKind.AUTHORIZATION)}
        self._note(Stage.TOPICS, errors, "listing topic")
        counts: Mapping[str, int] = {**listing.partition_counts, **hidden}
        if counts == self.view.topics:
            counts = self.view.topics  # the same object, so that caches keyed by it stay valid
        # A topic that is listed again has no id until it is read.
        ids = {topic: found for topic, found in self.view.topic_ids.items() if topic in counts}
        self.view = replace(
            self.view,
            topics=counts,
            hidden=frozenset(hidden),
            topics_read_at=self._clock(),
            cluster_id=listing.cluster_id,
            topic_ids=self.view.topic_ids if len(ids) == len(self.view.topic_ids) else ids,
        )
        cpu = self._cpu_clock() - cpu
        self._listed_every = listing_interval(len(counts), cpu, self._intervals.topics)
        self._health.record_listing_interval(self._client.alias, self._listed_every)

    def _hidden(self, listed: Mapping[str, int]) -> Mapping[str, int]:
        """Topics whose authorization was revoked, with their last known partition count.

        Brokers omit them from the list as if deleted; only a request by name reports the error.
        """
        gone = [topic for topic in self._wanted if topic not in listed]
        _found, errors = self._client.identify(gone) if gone else ({}, {})
        return {
            topic: self.view.topics[topic]
            for topic, kind in errors.items()
            if kind is ErrorKind.AUTHORIZATION and topic in self.view.topics
        }

    def _read_topic_ids(self) -> None:
        """Read the ids of topics that have moved, and of all after a failure and now and then.

        A description has an object per replica, which is expensive for thousands of topics.
        """
        unmoved = self.movement.take_unmoved().intersection(self._wanted)
        known = {} if self._reads_all_ids else self.view.topic_ids
        kept = {topic: known[topic] for topic in unmoved & known.keys()}
        self._reads_all_ids = True
        found, errors = self._client.identify([each for each in self._wanted if each not in kept])
        self._reads_all_ids = False
        self._note(Stage.TOPIC_IDS, errors, "describing topic")
        ids = {topic: each.topic_id for topic, each in found.items() if each.topic_id is not None}
        self.view = replace(self.view, topic_ids=kept | ids)

    def _read_configs(self) -> None:
        reading = self._client.topic_configs(self._wanted, defaults_of=_RETENTION)
        self._note(Stage.TOPIC_CONFIGS, reading.errors, "reading the settings of topic")
        self._reads_all_ids = True
        own, effective = {}, {}
        for topic, entries in reading.configs.items():
            known = {key: entry for key, entry in entries.items() if entry.value is not None}
            own[topic] = {k: str(e.value) for k, e in known.items() if not e.is_default}
            if known.keys() >= _RETENTION:
                effective[topic] = {name: str(known[name].value) for name in _RETENTION}
        self.view = replace(self.view, topic_configs=own, retention_configs=effective)

    def _read_groups(self) -> None:
        self.view = self._groups.read(self.view)
        if self._groups.has_more:
            self._due[Stage.GROUPS] = self._clock() + _PAUSE_SECONDS

    def _note(self, stage: Stage, errors: Mapping[str, str], what: str) -> None:
        """Record failures of single topics; the stage succeeds as a whole."""
        alias = self._client.alias
        failures = (
            (kind, f"{what} {topic!r} on cluster {alias} failed ({kind})")
            for topic, kind in errors.items()
        )
        self._health.record_partial_failures(alias, stage, failures)
