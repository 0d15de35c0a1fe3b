"""The range of a source partition that a flow is known to have replicated (pure).

Never interpolated, since missing records below the position are reported as lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_audit.scope.sync_history import select_current_syncs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_audit.scope.sync_history import SyncPoint


class Commit(NamedTuple):
    """The last source offset that MirrorMaker 2 committed; *at* in epoch seconds."""

    offset: int
    at: float


class KnownPosition(NamedTuple):
    """The position in the current source log."""

    next_offset: int | None
    """The first offset that is not committed; None: unknown. Not from syncs: if a task fails on a
    record, later records of its batch may be copied and synced."""
    reached: int | None
    """The first offset above all commits and syncs; None: unknown."""
    known_from: int
    """From here to the position the flow should have copied all records."""
    log_syncs: Sequence[SyncPoint]
    """The syncs of the current log."""
    replaced: bool
    """Whether the target may have copies of an earlier log of this name."""


def find_known_position(
    commit: Commit | None,
    points: Sequence[SyncPoint],
    *,
    source_end: int,
    recreated_between: tuple[float, float] | None = None,
    oldest_position: int | None = None,
) -> KnownPosition:
    """The position from the newest *commit* and all *points* (syncs, oldest first).

    *oldest_position*: the oldest position of this log in the timeline. Where the flow started is
    unknown below the oldest remaining sync, since the topic of the syncs is compacted. A re-created
    topic (*recreated_between*, see `select_current_syncs`) is followed from its first record.
    """
    log_syncs = select_current_syncs(points, source_end, recreated_between)
    replaced = recreated_between is not None or len(log_syncs) < len(points)
    since = (
        log_syncs[0].at
        if replaced and log_syncs
        else recreated_between[0]
        if recreated_between is not None
        else None
    )
    copied = [point.upstream for point in log_syncs]
    next_offset = None
    if commit is not None and commit.offset < source_end and (since is None or commit.at >= since):
        copied.append(commit.offset)
        next_offset = commit.offset + 1
    reached = max(copied) + 1 if copied else None
    started = [point.upstream for point in log_syncs] or (
        [] if next_offset is None else [next_offset]
    )
    if oldest_position is not None:
        started.append(oldest_position)
    known_from = 0 if recreated_between is not None else min(started, default=0)
    return KnownPosition(next_offset, reached, known_from, log_syncs, replaced)
