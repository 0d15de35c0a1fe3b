"""What is known of a consumer group on both clusters, for its failover readiness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from mm2slo_core.flow_offsets import Failover, Head
    from mm2slo_core.offset_sync_store import Untranslated
    from mm2slo_core.topology import TopicPartition


class OffsetMap(Protocol):
    """Maps source offsets to target offsets, as SyncRuns does."""

    def failover(
        self, upstream_offset: int, downstream_offset: int, head: Head | None = None
    ) -> Failover | None:
        """Return where a group with the committed offset *upstream_offset* should resume.

        And what it would read again from *downstream_offset* on.
        """

    def reaches(self, upstream_offset: int) -> bool:
        """Return whether MirrorMaker 2 has an offset sync at or below *upstream_offset*."""


class NewestCheckpoint(NamedTuple):
    """The newest checkpoint of a group and partition."""

    upstream: int
    downstream: int
    at: float


class LogRange(NamedTuple):
    """The offsets in a partition: [start, end)."""

    start: int
    end: int


class PartitionEvidence(NamedTuple):
    """A source partition with a committed offset of the group."""

    source: TopicPartition
    commit: int
    checkpoint: NewestCheckpoint | None
    target_log: LogRange | None
    """None: the partition does not exist on the target."""
    target_topic_exists: bool = True
    source_end: int | None = None
    offset_map: OffsetMap | None = None
    head: Head | None = None
    untranslated: Untranslated | None = None
    """Why OffsetSyncStore has no translation."""
    target_commit: int | None = None
    """The group's committed offset on the target."""
    beyond_end: int = 0
    """How far the group's commit on the source is beyond the end of the log there, if it is."""


@dataclass(frozen=True, slots=True)
class GroupEvidence:
    """A consumer group of the source."""

    group: str
    partitions: tuple[PartitionEvidence, ...]
    commits_readable: bool = True
    """False if the source answers, but not with the group's committed offsets."""
    target_commits_readable: bool = True
    """False if the target answers, but not with the group's committed offsets."""
    syncs_group_offsets: bool = False
    target_group_active: bool = False
    is_carried: bool = True
    """False for a group of a type that MirrorMaker 2 does not list."""
