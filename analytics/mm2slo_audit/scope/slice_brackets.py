"""The target range with all copies of a range of source offsets (pure).

Each end is the tightest that any of these gives; where none does, the range has no bracket.

- Offset syncs, from their topic and as the timeline recorded them: see `sync_cuts`. A range that
  MirrorMaker 2 read again has no cut in it, so the bracket includes all its copies.
- The timeline's positions: a record that had not arrived on the source at one time is copied after
  the target's end of that time; one below the committed position at another time was copied before
  the target's end of that time. After the last such time, if the position went back.
- For records that are not committed yet, or after the last sync, the current end of the target.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from mm2slo_audit.scope.sync_cuts import find_clean_cuts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mm2slo_audit.scope.partition_timeline import PartitionTimeline
    from mm2slo_audit.scope.sync_history import SyncPoint

_MARGIN: Final = 128
"""Source offsets beyond both ends, between offset syncs: a record of another producer and a lost
one may cancel out there. A sync is written at least every 100 records (`offset.lag.max`)."""


@dataclass(frozen=True, slots=True)
class CopyEvidence:
    """What is known of the copies of one partition."""

    syncs: Sequence[SyncPoint]
    """Of the current source log, from their topic."""
    source: PartitionTimeline | None
    target: PartitionTimeline | None
    dense: bool
    """As in `UnitReading`."""
    ends: tuple[int, int]
    """End of the source and of the target."""
    next_offset: int | None
    """As in `SourcePartition`."""


def find_target_range(start: int, end: int, known: CopyEvidence) -> tuple[int, int] | None:
    """The target range with all copies of source offsets [start, end), or None."""
    lows = list(_target_end_before(start, known))
    highs = list(_target_end_after(end, known))
    for syncs in (known.syncs, known.source.syncs.points if known.source else ()):
        written = {(point.upstream, point.downstream) for point in syncs}
        grid = (start - _MARGIN, max(_MARGIN, (end - start) // 16))
        for cut in find_clean_cuts(syncs, known.ends, grid, dense=known.dense):
            margin = 0 if cut in written else _MARGIN
            if cut.upstream <= start - margin:
                lows.append(cut.downstream)
            elif cut.upstream >= end + margin:
                highs.append(cut.downstream)
                break
    committed = known.next_offset is not None and end <= known.next_offset
    if not committed or end + _MARGIN > _last_synced(known):
        highs.append(known.ends[1])
    if not lows or not highs:
        return None
    return max(lows), max(*lows, min(highs))


def _last_synced(known: CopyEvidence) -> int:
    return max((point.upstream for point in known.syncs), default=0)


def _target_end_before(offset: int, known: CopyEvidence) -> Iterator[int]:
    """The target's end at a time when *offset* had not arrived on the source."""
    if known.source is None or known.target is None:
        return
    polls, copies = known.source.polls, known.target.polls
    at = bisect_right(polls, offset, key=lambda poll: poll.end)
    absent_at = polls[at].earliest if at < len(polls) else None
    if absent_at is not None:
        seen = bisect_right(copies, absent_at, key=lambda poll: poll.latest)
        if seen:
            yield copies[seen - 1].end


def _target_end_after(offset: int, known: CopyEvidence) -> Iterator[int]:
    """The target's end at a time after the position had passed *offset* for good."""
    if known.source is None or known.target is None:
        return
    commits, copies = known.source.commits, known.target.polls
    passed = next((at for at in range(len(commits), 0, -1) if commits[at - 1].value < offset), 0)
    if passed == len(commits):
        return
    committed_at = commits[passed].at * 1000
    # The poll at `earliest` still saw the end before.
    later = (
        before.end
        for before, poll in pairwise(copies)
        if poll.earliest is not None and poll.earliest >= committed_at
    )
    yield next(later, known.ends[1])
