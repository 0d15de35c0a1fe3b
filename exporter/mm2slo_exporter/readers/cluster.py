"""Reads what changes rarely on one cluster: topics, ids, settings, consumer groups.

Each stage has its own cadence and fails alone; the view keeps what was read last.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from mm2slo_exporter.health import Health, Stage
from mm2slo_exporter.observation import ClusterView
from mm2slo_exporter.threads import end
from mm2slo_kafka.errors import ErrorKind, KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.client import ClusterClient

_ACTIVE = frozenset({"stable", "preparing_rebalancing", "completing_rebalancing"})
_RETENTION = frozenset({"cleanup.policy", "retention.ms", "retention.bytes"})


@dataclass(frozen=True, slots=True)
class Cadence:
    """Seconds between two successes of a stage, by stage."""

    topics: float
    topic_configs: float
    groups: float


class Interests(Protocol):
    """What the flows want to know of a cluster."""

    def topics_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Topics whose ids and settings matter."""

    def groups_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Groups whose offsets matter."""


class ClusterReader:
    """One thread per cluster; `view` is replaced whole, never changed in place."""

    def __init__(
        self,
        client: ClusterClient,
        cadence: Cadence,
        interests: Interests,
        health: Health,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._cadence = cadence
        self._interests = interests
        self._health = health
        self._clock = clock
        self._due: dict[Stage, float] = {}
        self._wanted: tuple[str, ...] = ()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"cluster-{client.alias}", daemon=True
        )
        self.view = ClusterView()

    def start(self) -> None:
        """Begin to read; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a request under way is waited for, but not long."""
        self._stopping.set()
        self._wake.set()
        end(self._thread)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.read_due()
            soonest = min(self._due.values(), default=0.0)
            self._wake.wait(max(0.05, min(soonest - self._clock(), 5.0)))

    def read_due(self) -> None:
        """Read each stage whose time has come."""
        self._attempt(Stage.TOPICS, self._cadence.topics, self._read_topics)
        if self.view.topics_read_at is None:
            return
        self._note_wanted()
        self._attempt(Stage.TOPIC_IDS, self._cadence.topics, self._read_topic_ids)
        self._attempt(Stage.GROUPS, self._cadence.groups, self._read_groups)
        self._attempt(Stage.TOPIC_CONFIGS, self._cadence.topic_configs, self._read_configs)

    def _note_wanted(self) -> None:
        """Topics that are newly wanted are looked at soon, whatever the cadence of the stage."""
        wanted = tuple(self._interests.topics_of(self._client.alias, self.view.topics))
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
            # A failed stage is tried again soon, but not in a tight loop.
            self._due[stage] = started + min(every, 5.0)

    def _read_topics(self) -> None:
        listing = self._client.topics()
        hidden = self._hidden(listing.partition_counts)
        errors = {**listing.errors, **dict.fromkeys(hidden, ErrorKind.AUTHORIZATION)}
        self._note(Stage.TOPICS, errors, "listing topic")
        counts: Mapping[str, int] = {**listing.partition_counts, **hidden}
        if counts == self.view.topics:
            counts = self.view.topics  # the same object: what was derived from it is kept
        self.view = replace(
            self.view, topics=counts, hidden=frozenset(hidden), topics_read_at=self._clock()
        )

    def _hidden(self, listed: Mapping[str, int]) -> Mapping[str, int]:
        """Topics that we may no longer see, with the partitions they had.

        A broker leaves them out of its list as if they were deleted; asked by name, it tells.
        """
        gone = [topic for topic in self._wanted if topic not in listed]
        _found, errors = self._client.identify(gone) if gone else ({}, {})
        return {
            topic: self.view.topics[topic]
            for topic, kind in errors.items()
            if kind is ErrorKind.AUTHORIZATION and topic in self.view.topics
        }

    def _read_topic_ids(self) -> None:
        found, errors = self._client.identify(self._wanted)
        self._note(Stage.TOPIC_IDS, errors, "describing topic")
        ids = {topic: each.topic_id for topic, each in found.items() if each.topic_id is not None}
        self.view = replace(self.view, topic_ids=ids)

    def _read_configs(self) -> None:
        reading = self._client.topic_configs(self._wanted, defaults_of=_RETENTION)
        self._note(Stage.TOPIC_CONFIGS, reading.errors, "reading the settings of topic")
        own, effective = {}, {}
        for topic, entries in reading.configs.items():
            told = {key: entry for key, entry in entries.items() if entry.value is not None}
            own[topic] = {k: str(e.value) for k, e in told.items() if not e.is_default}
            if told.keys() >= _RETENTION:
                effective[topic] = {name: str(told[name].value) for name in _RETENTION}
        self.view = replace(self.view, topic_configs=own, retention_configs=effective)

    def _read_groups(self) -> None:
        asked_at = self._clock()
        listing = self._client.groups()
        problems = list(listing.problems)
        wanted = self._interests.groups_of(
            self._client.alias, (found.group for found in listing.groups)
        )
        offsets: dict[str, Mapping[TopicPartition, int]] = {}
        for group, found in self._client.group_offsets_many(wanted).items():
            if isinstance(found, KafkaOperationError):
                # A group that cannot be read keeps what was known of it, and is counted.
                problems.append(found)
                offsets[group] = self.view.group_offsets.get(group, {})
            elif found:
                offsets[group] = {key: commit.offset for key, commit in found.items()}
        self._health.incomplete(
            self._client.alias, Stage.GROUPS, [(each.kind, str(each)) for each in problems]
        )
        active = frozenset(found.group for found in listing.groups if found.state in _ACTIVE)
        self.view = replace(
            self.view, group_offsets=offsets, active_groups=active, groups_read_at=asked_at
        )

    def _note(self, stage: Stage, errors: Mapping[str, str], what: str) -> None:
        """Count what failed for single topics; the rest of the stage is good."""
        alias = self._client.alias
        failures = (
            (kind, f"{what} {topic!r} on cluster {alias} failed ({kind})")
            for topic, kind in errors.items()
        )
        self._health.incomplete(alias, stage, failures)
