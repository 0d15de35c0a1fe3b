"""How far a flow is known to have copied a source partition, and from where on (pure).

Never interpolated: a record below the position that the target lacks is called lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_audit.scope.sync_history import select_current_syncs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_audit.scope.sync_history import SyncPoint


class Commit(NamedTuple):
    """The last source offset that MirrorMaker 2 says the target has; *at* epoch seconds."""

    offset: int
    at: float


class KnownPosition(NamedTuple):
    """What is known of the source's log as it is now."""

    next_offset: int | None
    """The first offset not known to be copied; None: nothing is known to be."""
    known_from: int
    """From here on the flow should have copied everything below the position."""
    epoch: Sequence[SyncPoint]
    """The syncs of this log."""
    replaced: bool
    """Whether the target may hold copies of an earlier log of this name."""


def known_position(
    commit: Commit | None,
    points: Sequence[SyncPoint],
    *,
    source_end: int,
    born: tuple[float, float] | None = None,
    remembered: int | None = None,
) -> KnownPosition:
    """The position by the newest commit and all *points* (syncs, oldest first).

    *remembered* is the oldest position that the timeline tells of this log. Where the flow started
    is not known below the oldest surviving sync: the topic of the syncs is compacted. But it
    followed a topic that was created anew (*born*, see `select_current_syncs`) from its first record on.
    """
    epoch = select_current_syncs(points, source_end, born)
    replaced = born is not None or len(epoch) < len(points)
    since = epoch[0].at if replaced and epoch else born[0] if born is not None else None
    copied = [point.upstream for point in epoch]
    if commit is not None and commit.offset < source_end and (since is None or commit.at >= since):
        copied.append(commit.offset)
    next_offset = max(copied) + 1 if copied else None
    started = [point.upstream for point in epoch] or ([] if next_offset is None else [next_offset])
    if remembered is not None:
        started.append(remembered)
    known_from = 0 if born is not None else min(started, default=0)
    return KnownPosition(next_offset, known_from, epoch, replaced)
