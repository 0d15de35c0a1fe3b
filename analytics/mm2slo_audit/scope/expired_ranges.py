"""Offset ranges that retention removed before they were replicated (pure).

Gaps from compaction or transactions count as well: an upper bound in such topics.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mm2slo_audit.scope.partition_timeline import PartitionTimeline, TimedValue
    from mm2slo_audit.scope.sync_history import SyncPoint
    from mm2slo_core.audit.audit_scope import Window

_START_DELAY_SECONDS: Final = 120.0
"""Idle topics are written once a minute, with log starts up to half a minute old."""


class ExpiredRange(NamedTuple):
    """Source offsets [start, end) that were removed before they were copied."""

    start: int
    end: int
    next_copy: int | None
    """Target offset of the copy of record *end*; None: not copied yet."""


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Offsets of one source partition at the time of the snapshots."""

    at: float
    """Epoch s."""
    log_start: int
    source_end: int
    reached: int | None
    """As in `KnownPosition`."""
    copied_to: int | None = None
    """Source offset reached by the target's end, if it can be interpolated."""


def find_expired_ranges(
    log_syncs: Sequence[SyncPoint],
    timeline: PartitionTimeline | None,
    present: PartitionState,
    *,
    dense: bool,
    position_period: float,
) -> tuple[ExpiredRange, ...]:
    """All known ranges, ascending and disjoint.

    *dense*: each target offset is one record of this flow, so surplus source offsets between two
    syncs were not copied. *position_period* (s): maximum age of a healthy position; a gap between
    log start and position counts after that time.
    """
    found: list[ExpiredRange] = []
    if dense:
        found += _between_syncs(log_syncs, timeline, present)
    if timeline is not None:
        found += _below_log_start(timeline, present, position_period)
    if present.reached is not None:
        copied = max(present.reached, present.copied_to or 0)
        if present.log_start > copied:
            found.append(ExpiredRange(copied, present.log_start, None))
    return tuple(_joined(found))


def _between_syncs(
    log_syncs: Sequence[SyncPoint], timeline: PartitionTimeline | None, present: PartitionState
) -> Iterator[ExpiredRange]:
    """After a gap MirrorMaker 2 writes a sync at once: the gap ends at the first record copied."""
    for before, after in pairwise(log_syncs):
        run, rise = after.upstream - before.upstream, after.downstream - before.downstream
        if not 0 < rise < run or present.log_start < after.upstream:
            continue
        start = before.upstream + rise
        known_by = after.at + _START_DELAY_SECONDS
        later = None if timeline is None else _value_at(timeline.starts, known_by)
        if later is not None and later <= start and known_by <= present.at:
            continue  # the records still existed: transaction markers or compaction
        yield ExpiredRange(start, after.upstream, after.downstream)


def _below_log_start(
    timeline: PartitionTimeline, present: PartitionState, period: float
) -> Iterator[ExpiredRange]:
    moments = sorted({figure.at for figure in (*timeline.starts, *timeline.positions)})
    for at in moments:
        start, position = _value_at(timeline.starts, at), _value_at(timeline.positions, at)
        if start is None or position is None or start <= position:
            continue
        # A stale position advances within its period.
        if at + period <= present.at:
            position = _value_at(timeline.positions, at + period) or position
        else:
            position = max(position, present.reached or 0, present.copied_to or 0)
        if start > position:
            yield ExpiredRange(position, start, None)


def _value_at(figures: Sequence[TimedValue], at: float) -> int | None:
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
    """Number of records that arrived within *window*, and number of unknown arrival.

    A record counts if its bracket overlaps the window, so adjoining windows may both count it.
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
