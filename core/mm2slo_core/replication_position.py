"""How far a flow has replicated a source partition, and how well that is known.

Interpolation: the newest offset sync (u, d) says where record u went on the target; from there
to the target's end E, one target record is one source record, because MirrorMaker 2 emits a new
sync whenever source offsets are not consecutive (Kafka's `OffsetSyncWriter`). The last
replicated source offset is u + (E - 1 - d).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class PositionQuality(StrEnum):
    """What a position rests on; a closed list, used as a metric label.

    Only `live` is interpolated. All others that name replicated records rest on what
    MirrorMaker 2 itself wrote down: the larger of committed offset and newest offset sync.
    """

    LIVE = "live"
    """Interpolated from the newest sync and the target's end."""
    COMMITTED = "committed"
    """The committed offset: no sync is known, or the commit is ahead of the interpolation."""
    STALE = "stale"
    """The target's end is unknown (unreachable): the true position may have moved on."""
    NOT_STARTED = "not_started"
    """No commit, no sync: replication starts at the log start."""
    FOREIGN_WRITER = "foreign_writer"
    """The target holds more than this flow explains: other writers, or retried duplicates."""
    SHARED_TARGET = "shared_target"
    """Several flows write the target topic under one name: nothing to interpolate."""
    EXACTLY_ONCE = "exactly_once"
    """Transaction markers take target offsets: nothing to interpolate."""
    TARGET_RESET = "target_reset"
    """The target ends before the newest sync: it was truncated or re-created."""
    SOURCE_RESET = "source_reset"
    """The source ends before what was replicated: it was truncated or re-created."""


class SyncLike(Protocol):
    """The newest offset sync: one source record and its copy, by their offsets."""

    @property
    def upstream(self) -> int:
        """Offset on the source."""

    @property
    def downstream(self) -> int:
        """Offset on the target."""


@dataclass(frozen=True, slots=True)
class Position:
    """*next_offset* is the first source offset that is not yet replicated."""

    next_offset: int
    quality: PositionQuality


def estimate_position(
    *,
    committed: int | None,
    sync: SyncLike | None,
    target_end: int | None,
    high_watermark: int,
    log_start: int,
    shared_target: bool = False,
    exactly_once: bool = False,
) -> Position:
    """Estimate the position of one source partition.

    *committed* is the offset of the last acknowledged source record (None: no commit), *sync*
    the newest offset sync, *target_end* the end offset of the remote partition (None: unknown),
    *high_watermark* and *log_start* are the source's; give the last stable offset as
    *high_watermark* for a flow that reads committed. Read them in this order, so that lag errs
    high and never below zero: sync and commit, then target end, then source end.

    The position is never moved into a range in silence: where interpolation leaves what commit,
    sync and source end allow, it gives way to the larger of commit and sync, and the quality
    says why. With `source_reset` the next offset is the log start: nothing of the log as it is
    now is known to be replicated, and MirrorMaker 2 starts there again
    (`auto.offset.reset=earliest`). Otherwise it may lie below the log start: what is between
    was lost.
    """
    upstreams = (committed, None if sync is None else sync.upstream)
    known = max((last + 1 for last in upstreams if last is not None), default=None)
    if known is None:
        return Position(log_start, PositionQuality.NOT_STARTED)
    if known > high_watermark:
        return Position(log_start, PositionQuality.SOURCE_RESET)
    if target_end is None:
        return Position(known, PositionQuality.STALE)
    if sync is None:
        return Position(known, PositionQuality.COMMITTED)
    interpolated = sync.upstream + target_end - sync.downstream
    if target_end <= sync.downstream:
        quality = PositionQuality.TARGET_RESET
    elif shared_target:
        quality = PositionQuality.SHARED_TARGET
    elif exactly_once:
        quality = PositionQuality.EXACTLY_ONCE
    elif interpolated > high_watermark:
        quality = PositionQuality.FOREIGN_WRITER
    elif interpolated < known:
        quality = PositionQuality.COMMITTED
    else:
        return Position(interpolated, PositionQuality.LIVE)
    return Position(known, quality)
