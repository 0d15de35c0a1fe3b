"""Source records that retention removed before they were copied, by their offsets (pure).

Offsets thinned out by compaction or transactions count, too: an upper bound in such topics.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mm2slo_audit.scope.partition_timeline import Figure, PartitionTimeline
    from mm2slo_audit.scope.sync_history import SyncPoint
    from mm2slo_core.audit.audit_scope import Window

_STARTS_TOLD_SECONDS: Final = 120.0
"""A topic at rest is written once a minute, with log starts of the half minute before."""


class ExpiredRange(NamedTuple):
    """Source offsets [start, end) that were never copied and can no longer be."""

    start: int
    end: int
    next_copy: int | None
    """Target offset of the copy of record *end*, the first that survived; None: not copied yet."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Figures of one source partition at the time of the snapshots."""

    at: float
    """Epoch s."""
    log_start: int
    source_end: int
    next_offset: int | None
    copied_to: int | None = None
    """Where the target's end says that copying is, when it can be interpolated."""


def find_expired_ranges(
    epoch: Sequence[SyncPoint],
    timeline: PartitionTimeline | None,
    present: PartitionState,
    *,
    dense: bool,
    position_period: float,
) -> tuple[ExpiredRange, ...]:
    """All ranges that are known, ascending and disjoint.

    *dense*: each target offset is one record of this flow, so that between two syncs the source's
    surplus was not copied. *position_period* (s): how stale a healthy position may be; a gap
    between log start and position counts once it has lasted that long.
    """
    found: list[ExpiredRange] = []
    if dense:
        found += _between_syncs(epoch, timeline, present)
    if timeline is not None:
        found += _below_log_start(timeline, present, position_period)
    if present.next_offset is not None:
        copied = max(present.next_offset, present.copied_to or 0)
        if present.log_start > copied:
            found.append(ExpiredRange(copied, present.log_start, None))
    return tuple(_joined(found))


def _between_syncs(
    epoch: Sequence[SyncPoint], timeline: PartitionTimeline | None, present: PartitionState
) -> Iterator[ExpiredRange]:
    """After a gap MirrorMaker 2 writes a sync at once, so its end is the first record copied."""
    for before, after in pairwise(epoch):
        run, rise = after.upstream - before.upstream, after.downstream - before.downstream
        if not 0 < rise < run or present.log_start < after.upstream:
            continue
        start = before.upstream + rise
        told_by = after.at + _STARTS_TOLD_SECONDS
        later = None if timeline is None else _value_at(timeline.starts, told_by)
        if later is not None and later <= start and told_by <= present.at:
            continue  # the records were still there: transaction markers or compaction
        yield ExpiredRange(start, after.upstream, after.downstream)


def _below_log_start(
    timeline: PartitionTimeline, present: PartitionState, period: float
) -> Iterator[ExpiredRange]:
    moments = sorted({figure.at for figure in (*timeline.starts, *timeline.positions)})
    for at in moments:
        start, position = _value_at(timeline.starts, at), _value_at(timeline.positions, at)
        if start is None or position is None or start <= position:
            continue
        # A position that is only stale moves on within its period.
        if at + period <= present.at:
            position = _value_at(timeline.positions, at + period) or position
        else:
            position = max(position, present.next_offset or 0, present.copied_to or 0)
        if start > position:
            yield ExpiredRange(position, start, None)


def _value_at(figures: Sequence[Figure], at: float) -> int | None:
    index = bisect_right(figures, at, key=lambda figure: figure.at) - 1
    return figures[index].value if index >= 0 else None


def _joined(ranges: Iterable[ExpiredRange]) -> Iterator[ExpiredRange]:
    held: ExpiredRange | None = None
    for each in sorted(ranges, key=lambda one: (one.start, one.end)):
        if held is None:
            held = each
        elif each.start <= held.end:
            last = max(held, each, key=lambda one: (one.end, one.next_copy is not None))
            held = ExpiredRange(held.start, last.end, last.next_copy)
        else:
            yield held
            held = each
    if held is not None:
        yield held


def count_arrived_in(
    expired: ExpiredRange, timeline: PartitionTimeline, window: Window, present: PartitionState
) -> tuple[int, int]:
    """How many of the range arrived within *window*, and of how many that is not known.

    A record may have arrived any time within its bracket: it counts when that meets the window,
    so that two windows that adjoin may both count what one poll saw.
    """
    counted = unknown = 0
    start = expired.start
    for poll in timeline.polls:
        end = min(poll.end, expired.end)
        if end <= start:
            continue
        if poll.earliest is None:
            unknown += end - start
        elif poll.earliest < window.end and poll.latest >= window.start:
            counted += end - start
        start = end
    rest = expired.end - start
    if rest > 0 and timeline.polls:
        since = timeline.polls[-1].latest
        if since < window.end and present.at * 1000 >= window.start:
            counted += rest
    elif rest > 0:
        unknown += rest
    return counted, unknown
