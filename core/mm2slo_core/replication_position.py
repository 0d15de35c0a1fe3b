"""The position of a flow in a source partition, and its quality.

Interpolation: by the newest offset sync (u, d), source record u is target record d. From there to
the target's end E, each target record is one source record, because MirrorMaker 2 writes a new
sync whenever source offsets are not consecutive (Kafka's `OffsetSyncWriter`). The last replicated
source offset is u + (E - 1 - d).
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, Protocol


class PositionQuality(StrEnum):
    """What a position is based on; a closed list, used as a metric label.

    Only `live` is interpolated. The others, except `bounded` and `filtered`, use the larger of
    MirrorMaker 2's committed offset and newest offset sync. These two need earlier positions, and
    `estimate_position` does not return them.
    """

    LIVE = "live"
    """Interpolated from the newest sync and the target's end."""
    COMMITTED = "committed"
    """The committed offset: no sync is known, or the commit is ahead of the interpolation."""
    STALE = "stale"
    """The target's end is unknown (unreachable): the actual position may be further."""
    NOT_STARTED = "not_started"
    """No commit and no sync: replication starts at the log start."""
    FOREIGN_WRITER = "foreign_writer"
    """The target has more records than this flow wrote: other producers, or retried duplicates."""
    SHARED_TARGET = "shared_target"
    """Several flows write to the same target topic: interpolation is not possible."""
    EXACTLY_ONCE = "exactly_once"
    """Transaction markers use target offsets: interpolation is not possible."""
    TARGET_RESET = "target_reset"
    """The target ends before the newest sync: it was truncated or re-created."""
    SOURCE_RESET = "source_reset"
    """The source ends before the replicated offset: it was truncated or re-created."""
    RENAMED_COPY = "renamed_copy"
    """A transform gives the copy a name that is not known: its end cannot be read."""
    FILTERED = "filtered"
    """The end of the partition: records before it were not replicated, and a transform that drops
    records explains it (`DroppedTail`)."""
    BOUNDED = "bounded"
    """The source was truncated or re-created, and no newer commit or sync shows where MirrorMaker 2
    continues. The position is the highest possible one, so lag is a lower bound."""


class SyncLike(Protocol):
    """An offset sync: the offsets of one source record and its copy."""

    @property
    def upstream(self) -> int:
        """Offset on the source."""

    @property
    def downstream(self) -> int:
        """Offset on the target."""


class Position(NamedTuple):
    """*next_offset* is the first source offset that is not replicated."""

    next_offset: int
    quality: PositionQuality

    def moved_to(self, next_offset: int) -> Position:
        """The same position at another offset."""
        same = next_offset == self.next_offset
        return self if same else Position(next_offset, self.quality)


def estimate_position(
    *,
    committed: int | None,
    sync: SyncLike | None,
    target_end: int | None,
    high_watermark: int,
    log_start: int,
    shared_target: bool = False,
    exactly_once: bool = False,
    copy_known: bool = True,
) -> Position:
    """Estimate the position of one source partition.

    *committed* is the offset of the last acknowledged source record (None: no commit), *sync*
    the newest offset sync, *target_end* the end offset of the remote partition (None: unknown),
    *high_watermark* and *log_start* are the source's; pass the last stable offset as
    *high_watermark* for `read_committed` flows. Read them in this order, so that lag is never too
    low: sync and commit, then target end, then source end.

    The position is never clamped: if interpolation contradicts commit, sync or source end, the
    larger of commit and sync is used, and the quality has the reason. With `source_reset` the next
    offset is the log start: no record of the current log is known to be replicated, and
    MirrorMaker 2 restarts there (`auto.offset.reset=earliest`). Otherwise it may be below the log
    start: the records in between were lost.
    """
    last = committed
    if sync is not None and (last is None or sync.upstream > last):
        last = sync.upstream
    if last is None:
        return Position(log_start, PositionQuality.NOT_STARTED)
    known = last + 1
    if known > high_watermark:
        return Position(log_start, PositionQuality.SOURCE_RESET)
    if target_end is None:
        quality = PositionQuality.STALE if copy_known else PositionQuality.RENAMED_COPY
        return Position(known, quality)
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
