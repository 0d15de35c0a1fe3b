"""What was read of a flow in one round: frozen, handed from the readers to the state.

Order within a round: internal topics, then target ends, then source ends. A source end is
never older than the position it is compared with, so lag errs high and never below zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_core.readiness import OffsetMap
    from mm2slo_core.topology import TopicPartition
    from mm2slo_exporter.canary.events import Event
    from mm2slo_exporter.plan import FlowPlan

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def nothing() -> Mapping[_Key, _Value]:
    """Make an empty mapping that cannot be filled by accident."""
    return MappingProxyType({})


class Sync(NamedTuple):
    """The newest offset sync of a source partition: offsets on both sides, and when it was sent."""

    upstream: int
    downstream: int
    at: float


class Commit(NamedTuple):
    """A group's newest checkpoint on a target partition."""

    upstream: int
    downstream: int
    at: float


@dataclass(frozen=True, slots=True)
class OffsetsRead:
    """End and start offsets of one side, with the times of this and of the preceding success."""

    ends: Mapping[TopicPartition, int] = field(default_factory=nothing)
    starts: Mapping[TopicPartition, int] = field(default_factory=nothing)
    stable_ends: Mapping[TopicPartition, int] = field(default_factory=nothing)
    """Last stable offsets; read only for flows whose MirrorMaker 2 reads committed."""
    requested_at: float = 0.0
    answered_at: float = 0.0
    previous_requested_at: float | None = None
    previous_answered_at: float | None = None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What changes rarely on a cluster: topics, their ids and settings, consumer groups."""

    topics: Mapping[str, int] = field(default_factory=nothing)
    hidden: frozenset[str] = frozenset()
    """Of these topics, those that we could see and may no longer: nothing is known of them now."""
    topic_ids: Mapping[str, str] = field(default_factory=nothing)
    topic_configs: Mapping[str, Mapping[str, str]] = field(default_factory=nothing)
    """Settings that were set on the topic itself, by name; defaults are not in here."""
    retention_configs: Mapping[str, Mapping[str, str]] = field(default_factory=nothing)
    """The settings in force that decide what Kafka removes, by name."""
    group_offsets: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=nothing)
    active_groups: frozenset[str] = frozenset()
    """Groups that have members now."""
    topics_read_at: float | None = None
    groups_read_at: float | None = None
    """When the groups were asked for: a commit made later may be missing."""


@dataclass(frozen=True, slots=True)
class InternalsView:
    """What MirrorMaker 2's internal topics say, complete up to the time of the view."""

    syncs: Mapping[TopicPartition, Sync] = field(default_factory=nothing)
    offset_map: Callable[[TopicPartition], OffsetMap | None] = field(
        default=lambda _partition: None, repr=False
    )
    """Where offsets of a source partition lie on the target; None without any offset sync."""
    committed: Mapping[TopicPartition, int] = field(default_factory=nothing)
    """Offset of the last source record the target acknowledged, by source partition."""
    checkpoints: Mapping[str, Mapping[TopicPartition, Commit]] = field(default_factory=nothing)
    """Newest checkpoint by group and target partition."""
    states: Mapping[tuple[str, int | None], str] = field(default_factory=nothing)
    assigned: frozenset[TopicPartition] | None = None
    sync_group_offsets: bool = False
    waiting_for: tuple[str, ...] = ()
    """Topics that have not been read to their end and are not known to be absent."""


@dataclass(frozen=True, slots=True)
class TailProbe:
    """Whether a record waits at a position: the first record in [next_offset, through), if any.

    Transaction markers, aborted batches and compaction take offsets without leaving a record.
    """

    next_offset: int
    through: int
    first_offset: int | None
    first_timestamp: float | None


@dataclass(frozen=True, slots=True)
class Observation:
    """One round of reading for one flow."""

    at: float
    plan: FlowPlan
    source: ClusterView
    target: ClusterView
    internals: InternalsView
    source_offsets: OffsetsRead | None
    """None until the source has answered once; not refreshed while it does not."""
    target_offsets: OffsetsRead | None
    source_readable: bool
    target_readable: bool
    probes: Mapping[TopicPartition, TailProbe] = field(default_factory=nothing)
    canary_events: tuple[Event, ...] = ()
