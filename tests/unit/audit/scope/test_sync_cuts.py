"""Cuts are correct for everything that MirrorMaker 2 writes, and find more losses."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from reference_audit import judge

from mm2slo_audit.scope.sync_history import SyncHistory, TimedSync, find_cuts
from mm2slo_core.audit.audit_scope import (
    AuditRecord,
    Cut,
    FlowScope,
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow

_SIZE = 1_500
_WIDTH = 60
_LAG_MAX = 10
_BATCH = 5
_FURTHEST_BACK = 40
_WINDOW = Window(0, 1)


def points(*pairs: tuple[int, int]) -> list[TimedSync]:
    return [TimedSync(*each, at=0.0) for each in pairs]


def test_find_cuts_one_to_one_range_is_cut_on_grid() -> None:
    syncs = points((0, 1_000), (1_000, 2_000))
    found = find_cuts(syncs, dense=True, read=(500, 1_000), target_end=2_000, min_width=200)
    assert found == ((500, 1_500), (700, 1_700), (900, 1_900))


def test_find_cuts_unequal_syncs_are_only_cuts() -> None:
    syncs = points((0, 0), (400, 300), (1_000, 700))
    found = find_cuts(syncs, dense=True, read=(100, 2_000), target_end=1_700, min_width=100)
    assert found == ((0, 0), (400, 300), (1_000, 700))


def test_find_cuts_replayed_range_has_no_cut() -> None:
    # Up to 1,050 and back to 700, then on.
    syncs = points((0, 0), (1_000, 1_000), (700, 1_050), (2_000, 2_350))
    found = find_cuts(syncs, dense=True, read=(0, 2_000), target_end=2_350, min_width=100)
    assert max(cut for cut in found if cut.upstream < 1_050) == (600, 600)
    assert min(cut for cut in found if cut.upstream >= 1_050) == (1_050, 1_400)


def test_find_cuts_hidden_replay_has_no_cut() -> None:
    # The last sync before the crash is 1,000; 50 records after it were copied twice.
    syncs = points((0, 0), (1_000, 1_000), (1_010, 1_060), (2_000, 2_050))
    found = find_cuts(syncs, dense=True, read=(900, 2_000), target_end=2_050, min_width=10)
    assert not [cut for cut in found if 950 < cut.upstream < 1_060]
    assert (950, 950) in found
    assert (1_060, 1_110) in found


def test_find_cuts_transaction_markers_keep_syncs_as_cuts() -> None:
    syncs = points((0, 0), (400, 500), (1_000, 1_300))
    found = find_cuts(syncs, dense=False, read=(0, 1_500), target_end=2_000, min_width=100)
    assert found == ((0, 0), (400, 500), (1_000, 1_300))


def test_find_cuts_recreated_target_uses_newest_syncs() -> None:
    syncs = points((0, 0), (1_000, 1_000), (1_000, 0), (1_500, 500))
    found = find_cuts(syncs, dense=True, read=(500, 2_000), target_end=1_000, min_width=500)
    assert found == ((1_000, 0), (1_500, 500))


def test_find_cuts_without_syncs_is_empty() -> None:
    assert find_cuts((), dense=True, read=(0, 10), target_end=10) == ()


def test_find_cuts_large_partition_has_at_most_128() -> None:
    syncs = points((0, 0), (10_000_000, 10_000_000))
    found = find_cuts(syncs, dense=True, read=(0, 10_000_000), target_end=10_000_000)
    assert len(found) == 128


@dataclass(frozen=True)
class Copied:
    """A partition as MirrorMaker 2 copied it, with duplicates, foreign and dropped records."""

    content: list[int]
    """By source offset."""
    target: list[tuple[int | None, int]]
    """By target offset: source offset (None: foreign) and content."""
    syncs: SyncHistory
    dropped: frozenset[int]


def copied(seed: int, *, contents: int, dropped_share: float = 0.0) -> Copied:
    """Batches written twice, foreign records, filters and crashes; deterministic by *seed*."""
    draw = random.Random(seed)
    content = [draw.randrange(contents) for _ in range(_SIZE)]
    dropped = frozenset(at for at in range(_SIZE) if draw.random() < dropped_share)
    target: list[tuple[int | None, int]] = []
    syncs = SyncHistory()
    start = 0
    while start < _SIZE:
        until = min(_SIZE, start + draw.randrange(1, 400))
        previous = synced = None
        for low in range(start, until, _BATCH):
            batch = range(low, min(low + _BATCH, until))
            sent = [offset for offset in batch if offset not in dropped]
            first = len(target)
            # A duplicate before the first sync could not be detected.
            for _ in range(2 if target and draw.random() < 0.02 else 1):
                first = len(target)
                target += [(offset, content[offset]) for offset in sent]
            for place, offset in enumerate(sent, first):
                skipped = previous is not None and offset != previous + 1
                if synced is None or skipped or place - synced > _LAG_MAX:
                    syncs.add(TimedSync(offset, place, at=0.0))
                    synced = place
                previous = offset
            if draw.random() < 0.02:
                strangers = range(draw.randrange(1, 4))
                target += [(None, draw.randrange(contents)) for _ in strangers]
        back = 0 if until == _SIZE else draw.choice((0, 0, draw.randrange(_FURTHEST_BACK)))
        start = max(0, until - back)
    return Copied(content, target, syncs, dropped)


def cuts_of(made: Copied) -> tuple[Cut, ...]:
    return find_cuts(
        made.syncs.points,
        dense=True,
        read=(0, _SIZE),
        target_end=len(made.target),
        min_width=_WIDTH,
    )


def test_find_cuts_divide_source_and_copies() -> None:
    found = 0
    for seed in range(60):
        made = copied(seed, contents=3)
        for upstream, downstream in cuts_of(made):
            before = [of for of, _ in made.target[:downstream] if of is not None]
            after = [of for of, _ in made.target[downstream:] if of is not None]
            assert max(before, default=-1) < upstream <= min(after, default=upstream), seed
            found += 1
    # Despite crashes and foreign records most ranges are cut.
    assert found > 60 * 0.5 * _SIZE / _WIDTH


def records_of(made: Copied) -> list[AuditRecord]:
    def record(side: Side, offset: int, content: int) -> AuditRecord:
        return AuditRecord(0, 0, side, 0, offset, _WINDOW.start, content, None, 1)

    return [
        *(record(Side.SOURCE, offset, each) for offset, each in enumerate(made.content)),
        *(record(Side.TARGET, offset, each) for offset, (_of, each) in enumerate(made.target)),
    ]


def lost_of(made: Copied, found: tuple[Cut, ...]) -> Counter[int]:
    """Records called lost, by content."""
    source = SourcePartition(0, 0, 0, _SIZE, next_offset=_SIZE, cuts=found)
    scope = UnitScope(
        index=0,
        target_topic="t",
        flows=(FlowScope(Flow("s", "t"), "t", (source,)),),
        partitions=(TargetPartition(0, 0, 0, len(made.target)),),
        window=_WINDOW,
        identity=Identity().without_timestamp(),
        target_time=TimestampType.LOG_APPEND,
    )
    outcome = judge(records_of(made), (), scope, Sample(1.0))
    return Counter(each.fingerprint for each in outcome.evidence if each.verdict is Verdict.LOST)


@pytest.mark.parametrize(
    ("contents", "share_by_count", "share_by_cuts"),
    [
        # Foreign and repeated records are much closer to losses here than in practice.
        (1, 0.0, 0.1),
        (3, 0.05, 0.15),
        (40, 0.4, 0.6),
        (1_000_000, 1.0, 1.0),
    ],
)
def test_cuts_find_more_losses_and_no_false_ones(
    contents: int, share_by_count: float, share_by_cuts: float
) -> None:
    lost = by_count = by_cuts = 0
    for seed in range(8):
        made = copied(seed, contents=contents, dropped_share=0.01)
        truth = Counter(made.content[offset] for offset in made.dropped)
        found = lost_of(made, cuts_of(made))
        assert found <= truth, seed
        by_count += lost_of(made, ()).total()
        by_cuts += found.total()
        lost += truth.total()
    assert by_count <= share_by_count * lost
    assert share_by_cuts * lost <= by_cuts <= lost
