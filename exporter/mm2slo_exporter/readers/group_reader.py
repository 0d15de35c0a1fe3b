"""Reads the consumer groups of one cluster in turn: state, committed offsets, members."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.topology import shared_partition
from mm2slo_exporter.collection_health import Health, Stage
from mm2slo_exporter.observation import INACTIVE_GROUP_STATES
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mm2slo_core.topology import TopicPartition
    from mm2slo_exporter.observation import ClusterView
    from mm2slo_kafka.cluster_client import ClusterClient
    from mm2slo_kafka.consumer_groups import GroupsReading

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
        health: Health,
        *,
        every: float,
        members_every: float | None,
        clock: Callable[[], float],
    ) -> None:
        """*groups_of*: of a cluster's groups, those to read. *every*: seconds of a round."""
        self._client = client
        self._groups_of = groups_of
        self._health = health
        self._within = min(every / 2, _MAX_SECONDS)
        self._members_every = members_every
        self._clock = clock
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
        listed_at = self._clock()
        listing = self._client.groups(with_others=listed_at >= self._others_due)
        self._note_others(listing, listed_at)
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
            self._client.alias, Stage.GROUPS, [(each.kind, str(each)) for each in problems]
        )
        return replace(
            view,
            groups_complete=view.groups_complete or not self._queue,
            group_states=states,
            group_members=self._known_members(wanted, states),
            uncarried_groups=view.uncarried_groups
            if listing.problems
            else self._uncarried(view, states, listed_at),
            knows_uncarried_groups=self._others is not None,
        )

    def _note_others(self, listing: GroupsReading, listed_at: float) -> None:
        if listed_at < self._others_due:
            return
        if listing.others is not None:
            self._others = listing.others
        took = self._clock() - listed_at
        self._others_due = listed_at + max(_OTHERS_EVERY_SECONDS, took / _OTHERS_COST)

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
        found = self._client.group_offsets(
            self._queue, within=self._within, timeout=_REQUEST_SECONDS
        )
        self._queue = [group for group in self._queue if group not in found]
        kept = set(wanted)
        offsets: dict[str, Mapping[TopicPartition, int]] = {}
        read_at: dict[str, float] = {}
        for group in view.group_offsets.keys() & kept:
            offsets[group], read_at[group] = view.group_offsets[group], view.groups_read_at[group]
        unreadable = set(view.unreadable_groups & kept)
        for group, read in found.items():
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
        now = self._clock()
        active = {
            g: states[g] for g in wanted if states.get(g, "dead") not in INACTIVE_GROUP_STATES
        }
        self._members = {
            group: known
            for group, known in self._members.items()
            if active.get(group) == known.state and now - known.at < every
        }
        due = [group for group in active if group not in self._members]
        found = self._client.group_members(due, within=self._within, timeout=_REQUEST_SECONDS)
        for group, read in found.items():
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
    found: Mapping[TopicPartition, int], before: Mapping[TopicPartition, int] | None
) -> Mapping[TopicPartition, int]:
    """*found* with the partitions that others refer to, not those of the worker's answer."""
    if before is not None and list(before) == list(found):
        return dict(zip(before, found.values(), strict=True))
    return {shared_partition(*partition): offset for partition, offset in found.items()}
