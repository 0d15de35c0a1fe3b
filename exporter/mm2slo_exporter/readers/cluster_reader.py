"""Reads metadata of one cluster: topics, ids, settings, consumer groups and their offsets.

Each stage has its own interval and fails alone; the view keeps what was read last.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Final, NamedTuple, Protocol

from mm2slo_core.topology import TopicPartition, shared_partition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import INACTIVE_GROUP_STATES, ClusterView
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import GroupsReading
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

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
    """Between reads of topic ids; topics are listed more often (`listing_interval`)."""
    topic_configs: float
    groups: float
    members: float | None
    """Between reads of each group's members; None: they are not read."""


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
        health: CollectionHealth,
        *,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
        cpu_clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """*timer* decides what is due: the clock may be set back."""
        self._client = client
        self._cpu_clock = cpu_clock
        self._listed_every = listing_interval(0, 0.0, intervals.topics)
        self._intervals = intervals
        self._watch_scope = watch_scope
        self._health = health
        self._clock = clock
        self._timer = timer
        self._due: dict[CollectionStage, float] = {}
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
            timer=timer,
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
            self._wake.wait(max(0.05, min(soonest - self._timer(), 5.0)))

    def read_due(self) -> None:
        listed = self.view.topics
        self._attempt(CollectionStage.TOPICS, self._listed_every, self._read_topics)
        if self.view.topics_read_at is None:
            return
        self._update_wanted()
        self._attempt(CollectionStage.TOPIC_IDS, self._intervals.topics, self._read_topic_ids)
        if self.view.topics is not listed:
            self._watch_scope.topics_changed(self._client.alias)
        self._attempt(CollectionStage.GROUPS, self._intervals.groups, self._read_groups)
        self._attempt(
            CollectionStage.TOPIC_CONFIGS, self._intervals.topic_configs, self._read_configs
        )

    def _update_wanted(self) -> None:
        """Make the topic stages due when topics were added."""
        wanted = tuple(self._watch_scope.topics_of(self._client.alias, self.view.topics))
        if not set(self._wanted).issuperset(wanted):
            for stage in (CollectionStage.TOPIC_IDS, CollectionStage.TOPIC_CONFIGS):
                self._due.pop(stage, None)
        self._wanted = wanted

    def _attempt(self, stage: CollectionStage, every: float, read: Callable[[], None]) -> None:
        started = self._timer()
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
        self._note(CollectionStage.TOPICS, errors, "listing topic")
        counts: Mapping[str, int] = {**listing.partition_counts, **hidden}
        if counts == self.view.topics:
            counts = self.view.topics  # the same object, so that caches keyed by it stay valid
        # A topic that is listed again has no id until it is read.
        ids = {
            topic: topic_id for topic, topic_id in self.view.topic_ids.items() if topic in counts
        }
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

        Brokers omit them from the list as if deleted (KafkaApis.handleTopicMetadataRequest); only a
        request by name reports the error.
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

        Only the id (KIP-516) shows a re-creation for certain. A description has an object per
        replica, which is expensive for thousands of topics.
        """
        unmoved = self.movement.take_unmoved().intersection(self._wanted)
        known = {} if self._reads_all_ids else self.view.topic_ids
        unchanged = {topic: known[topic] for topic in unmoved & known.keys()}
        self._reads_all_ids = True
        identities, errors = self._client.identify(
            [each for each in self._wanted if each not in unchanged]
        )
        self._reads_all_ids = False
        self._note(CollectionStage.TOPIC_IDS, errors, "describing topic")
        ids = {
            topic: each.topic_id for topic, each in identities.items() if each.topic_id is not None
        }
        self.view = replace(self.view, topic_ids=unchanged | ids)

    def _read_configs(self) -> None:
        reading = self._client.topic_configs(self._wanted, defaults_of=_RETENTION)
        self._note(CollectionStage.TOPIC_CONFIGS, reading.errors, "reading the settings of topic")
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
            self._due[CollectionStage.GROUPS] = self._timer() + _PAUSE_SECONDS

    def _note(self, stage: CollectionStage, errors: Mapping[str, str], what: str) -> None:
        """Record failures of single topics; the stage succeeds as a whole."""
        alias = self._client.alias
        failures = (
            (kind, f"{what} {topic!r} on cluster {alias} failed ({kind})")
            for topic, kind in errors.items()
        )
        self._health.record_partial_failures(alias, stage, failures)


_MAX_SECONDS: Final = 10.0
"""Until no further group is requested, so that the cluster's other stages are not late."""
_REQUEST_SECONDS: Final = 10.0
_UNLISTED_PER_ROUND: Final = 100
_OTHERS_EVERY_SECONDS: Final = 30.0

_OTHERS_COST: Final = 0.02
"""Of the time at most: listing groups of all types describes each of them."""


class _Members(NamedTuple):
    number: int | None
    state: str
    at: float


class GroupReader:
    """Reads the groups of one cluster in rounds; a round of many groups takes several reads.

    Groups whose last read failed come last, so that a group that always fails starves no other.
    """

    def __init__(
        self,
        client: ClusterClient,
        groups_of: Callable[[str, Iterable[str]], Sequence[str]],
        health: CollectionHealth,
        *,
        every: float,
        members_every: float | None,
        clock: Callable[[], float],
        timer: Callable[[], float],
    ) -> None:
        """*groups_of*: of a cluster's groups, those to read. *every*: seconds of a round."""
        self._client = client
        self._groups_of = groups_of
        self._health = health
        self._within = min(every / 2, _MAX_SECONDS)
        self._members_every = members_every
        self._clock = clock
        self._timer = timer
        self._queue: list[str] = []
        self._unlisted: set[str] = set()
        self._members: dict[str, _Members] = {}
        self._others: frozenset[str] | None = None
        self._others_due = 0.0

    @property
    def has_more(self) -> bool:
        """Whether the round has groups that have not been read."""
        return bool(self._queue)

    def read(self, view: ClusterView) -> ClusterView:
        """*view* with what was read. Raises KafkaOperationError if no broker lists its groups."""
        listed_at, started = self._clock(), self._timer()
        with_others = started >= self._others_due
        listing = self._client.groups(with_others=with_others)
        if with_others:
            self._note_others(listing, started)
        problems = [*listing.problems, *listing.others_problems]
        states = {found.group: found.state for found in listing.groups}
        known = states.keys() | view.group_offsets.keys() | view.unreadable_groups
        known |= self._others or frozenset()
        wanted = self._groups_of(self._client.alias, known)
        if self._queue:
            existing = set(wanted)
            self._queue = [group for group in self._queue if group in existing]
        else:
            self._queue = self._round_of(wanted, known, view.unreadable_groups)
        view = self._read_offsets(view, wanted, problems)
        if not self._queue and self._members_every is not None:
            self._read_members(wanted, states, self._members_every, problems)
        self._health.record_partial_failures(
            self._client.alias,
            CollectionStage.GROUPS,
            [(each.kind, str(each)) for each in problems],
        )
        return replace(
            view,
            groups_complete=view.groups_complete or not self._queue,
            groups_listed_at=view.groups_listed_at if listing.problems else listed_at,
            group_states=states,
            group_members=self._known_members(wanted, states),
            uncarried_groups=view.uncarried_groups
            if listing.problems
            else self._uncarried(view, states, listed_at),
            knows_uncarried_groups=self._others is not None,
        )

    def _note_others(self, listing: GroupsReading, started: float) -> None:
        # MirrorMaker 2 lists classic and consumer groups alone. Share groups (KIP-932) and Streams
        # groups (KIP-1071) would silently stay behind at a failover.
        if listing.others is not None:
            self._others = listing.others
        took = self._timer() - started
        self._others_due = started + max(_OTHERS_EVERY_SECONDS, took / _OTHERS_COST)

    def _uncarried(
        self, view: ClusterView, states: Mapping[str, str], listed_at: float
    ) -> frozenset[str]:
        """Groups that a complete listing lacks, as MirrorMaker 2's does.

        A group that can be read by name, and was after the listing, was not deleted: an application
        changed from a classic to a Streams group.
        """
        others = self._others or frozenset()
        changed = {
            group
            for group in view.group_offsets
            if group in view.uncarried_groups or view.groups_read_at[group] >= listed_at
        }
        return (others | changed).difference(states)

    def _round_of(
        self, wanted: Sequence[str], known: Iterable[str], failed: Iterable[str]
    ) -> list[str]:
        """Listed groups, those read before, and those that only a checkpoint names.

        Brokers omit groups whose authorization was revoked from the list, as if deleted; only a
        request by name reports the error. Checkpoints of deleted groups remain, so what only a
        checkpoint names is read again only while that fails.
        """
        read_before, last = set(known), set(failed)
        self._unlisted.intersection_update(wanted)  # others have no checkpoint any more
        unlisted = [g for g in wanted if g not in read_before | self._unlisted]
        new = unlisted[:_UNLISTED_PER_ROUND]
        self._unlisted.update(new)
        listed = sorted((g for g in wanted if g in read_before), key=lambda group: group in last)
        return [*listed, *new]

    def _read_offsets(
        self, view: ClusterView, wanted: Sequence[str], problems: list[KafkaOperationError]
    ) -> ClusterView:
        answers = self._client.group_offsets(
            self._queue, within=self._within, timeout=_REQUEST_SECONDS
        )
        self._queue = [group for group in self._queue if group not in answers]
        existing = set(wanted)
        offsets: dict[str, Mapping[TopicPartition, int]] = {}
        read_at: dict[str, float] = {}
        for group in view.group_offsets.keys() & existing:
            offsets[group], read_at[group] = view.group_offsets[group], view.groups_read_at[group]
        unreadable = set(view.unreadable_groups & existing)
        for group, read in answers.items():
            if isinstance(read.found, KafkaOperationError):
                # A group that cannot be read keeps its last known offsets.
                problems.append(read.found)
                unreadable.add(group)
                continue
            unreadable.discard(group)
            before = offsets.pop(group, None)
            if read.found:
                # The same objects, so that later rounds find them unchanged by identity.
                offsets[group] = before if before == read.found else _share(read.found, before)
                read_at[group] = read.requested_at
        return replace(
            view,
            group_offsets=view.group_offsets if offsets == view.group_offsets else offsets,
            groups_read_at=read_at,
            unreadable_groups=frozenset(unreadable),
        )

    def _read_members(
        self,
        wanted: Iterable[str],
        states: Mapping[str, str],
        every: float,
        problems: list[KafkaOperationError],
    ) -> None:
        """Describe groups that may have members, if their state has changed or after *every* s."""
        now = self._timer()
        active = {
            g: states[g] for g in wanted if states.get(g, "dead") not in INACTIVE_GROUP_STATES
        }
        self._members = {
            group: known
            for group, known in self._members.items()
            if active.get(group) == known.state and now - known.at < every
        }
        due = [group for group in active if group not in self._members]
        answers = self._client.group_members(due, within=self._within, timeout=_REQUEST_SECONDS)
        for group, read in answers.items():
            number = read.found
            if isinstance(number, KafkaOperationError):
                problems.append(number)
                number = None
            self._members[group] = _Members(number, active[group], now)

    def _known_members(self, wanted: Iterable[str], states: Mapping[str, str]) -> Mapping[str, int]:
        """Members by group; 0 for groups whose state means that."""
        if self._members_every is None:
            return {}
        numbers = {group: 0 for group in wanted if states.get(group) in INACTIVE_GROUP_STATES}
        for group, known in self._members.items():
            if known.number is not None and known.state == states.get(group):
                numbers[group] = known.number
        return numbers


def _share(
    offsets: Mapping[TopicPartition, int], before: Mapping[TopicPartition, int] | None
) -> Mapping[TopicPartition, int]:
    """*offsets* with the partitions that others refer to, not those of the worker's answer."""
    if before is not None and list(before) == list(offsets):
        return dict(zip(before, offsets.values(), strict=True))
    return {shared_partition(*partition): offset for partition, offset in offsets.items()}


class TopicMovement:
    """Compares the readings of end offsets. Thread-safe.

    A re-created topic starts empty: only a topic that had records shows it by its end offsets.
    One that is written fast may have passed its old end at the next reading. Records of a topic
    are lost then, so that any movement counts; of a copy, only an end that has fallen.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._moved: set[str] = set()
        self._with_records: set[str] = set()

    def observe(
        self, before: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Compare a reading of topics with the one before it of the same partitions."""
        moved = (each for each, end in ends.items() if before.get(each) != end)
        self._add(ends, () if before is ends else moved)

    def observe_copies(
        self, before: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> None:
        """Compare a reading of copies with the one before it of the same partitions."""
        fallen = (each for each, end in ends.items() if before.get(each, inf) > end)
        self._add(ends, () if before is ends else fallen)

    def _add(
        self, ends: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
    ) -> None:
        moved = {partition.topic for partition in partitions}
        with_records = {partition.topic for partition, end in ends.items() if end}
        with self._lock:
            self._moved |= moved
            self._with_records |= with_records

    def take_unmoved(self) -> set[str]:
        """Topics with records that were read since the last call, and never with another end."""
        with self._lock:
            unmoved = self._with_records - self._moved
            self._moved, self._with_records = set(), set()
        return unmoved
