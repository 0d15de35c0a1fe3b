"""Selection of slices for the second pass, and overlapping parts of a partition."""

from dataclasses import replace

from mm2slo_audit.engine.group_marks import (
    DECIDED,
    DUPLICATED,
    FINE_SLICES,
    LATE,
    MISSING,
    OVERTAKEN,
    UNEXPLAINED,
    GroupMark,
    TimeSlices,
)
from mm2slo_audit.engine.match_tally import PartOffsets, find_overlaps, plan_parts
from mm2slo_audit.engine.second_pass import merge_ranges, select_slices
from mm2slo_audit.engine.unit_columns import Units
from mm2slo_core.audit.audit_scope import (
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.topology import Flow

OVERDUE = MISSING | DECIDED | 1 << 7
EXTRA = UNEXPLAINED | DECIDED


def unit(sizes: tuple[int, ...] = (1, 1)) -> UnitScope:
    return UnitScope(
        index=0,
        target_topic="us.orders",
        flows=(
            FlowScope(
                Flow("us", "eu"),
                "orders",
                tuple(SourcePartition(p, 0, 0, size, None) for p, size in enumerate(sizes)),
            ),
        ),
        partitions=tuple(TargetPartition(p, 0, 0, size) for p, size in enumerate(sizes)),
        window=Window(0, FINE_SLICES * (1 << 14)),
        identity=Identity(),
    )


SLICES = TimeSlices(Units((unit(),)))


def mark(
    flags: int,
    coarse: int,
    fine: int,
    low: int = 0,
    *,
    high: int | None = None,
    oldest: int | None = None,
    partition: int = 0,
) -> GroupMark:
    flow = None if flags & UNEXPLAINED else 0
    return GroupMark(0, partition, flow, flags, coarse, 1, fine, low, high, oldest)


def test_time_slices_short_window_has_slices_of_one_millisecond() -> None:
    assert SLICES.width(unit()) == 1
    assert SLICES.at(unit(), 65) == (1, 2)
    assert SLICES.at(unit(), 63) == (0, -(1 << 63))


def test_mark_decided_flags_give_verdict() -> None:
    assert mark(OVERDUE, 0, 1).verdict is Verdict.OVERDUE
    assert mark(EXTRA, 0, 1).verdict is Verdict.EXTRA
    assert mark(DUPLICATED, 0, 1).verdict is None


def test_select_slices_decided_records_are_read_only_for_evidence() -> None:
    found = [mark(OVERDUE, at, 0b11, low=at, oldest=FINE_SLICES * at) for at in range(10)]
    selection = select_slices(found, SLICES, cap=2)
    assert dict(selection.masks) == {(0, 0, 0): 0b11, (0, 0, 1): 0b11}
    assert selection.oldest == {0: 0}


def test_select_slices_with_leftovers_on_both_sides_reads_possibly_moved_records() -> None:
    missing = [mark(OVERDUE, at, 0b11, low=at, oldest=FINE_SLICES * at) for at in range(10)]
    found = [*missing, mark(EXTRA, 0, 0b01, low=7, partition=1)]
    selection = select_slices(found, SLICES, cap=1)
    # The first may have moved, so another one may be the first that has not.
    assert dict(selection.masks) == {(0, 0, 0): 0b11, (0, 0, 1): 0b11, (0, 1, 0): 0b01}
    assert selection.oldest == {0: FINE_SLICES}


def test_select_slices_extra_records_are_read_where_another_partition_may_have_their_record() -> (
    None
):
    found = [mark(EXTRA, at, 0b11, low=at) for at in range(10)]
    selection = select_slices(found, SLICES, cap=2)
    assert dict(selection.masks) == {(0, 0, at): 0b11 for at in range(10)}
    alone = TimeSlices(Units((unit((1,)),)))
    assert set(select_slices(found, alone, cap=2).masks) == {(0, 0, 0), (0, 0, 1)}


def test_select_slices_overtaken_records_adds_their_ranges() -> None:
    found = [mark(OVERTAKEN, 0, 1, 5, high=9), mark(OVERTAKEN | DUPLICATED, 3, 4, 8, high=20)]
    selection = select_slices(found, SLICES, cap=1)
    assert dict(selection.ranges) == {(0, 0, 1): [(5, 9), (8, 20)]}
    assert dict(selection.masks) == {(0, 0, 3): 4}
    assert merge_ranges([(8, 20), (5, 9), (22, 22), (21, 21)]) == [(5, 22)]


def test_select_slices_late_records_are_read_only_for_evidence() -> None:
    late = [mark(LATE, at, 1, low=100 - at) for at in range(10)]
    selection = select_slices([*late, mark(LATE | OVERTAKEN, 30, 1, 0, high=9)], SLICES, cap=2)
    # An overtaken one may be the first: its low offset is that of another record.
    assert set(selection.masks) == {(0, 0, 8), (0, 0, 9), (0, 0, 30)}


def test_find_overlaps_returns_ranges_shared_by_parts() -> None:
    apart = [PartOffsets(0, 0, 9, 0, 9), PartOffsets(1, 10, 19, 10, 19)]
    assert find_overlaps(apart) == ([], [])
    # The first part reaches into the others on the source, the second into the first on the target.
    meeting = [
        PartOffsets(0, 0, 25, 0, 9),
        PartOffsets(1, 10, 19, 8, 19),
        PartOffsets(2, 20, 30, 20, 30),
    ]
    assert find_overlaps(meeting) == ([(10, 25), (20, 25)], [(8, 9)])


def test_plan_parts_splits_only_dominant_partition() -> None:
    even, hot = Units((unit((2_000_000,) * 12),)), Units((unit((20_000_000, 1_000)),))
    assert plan_parts(even, 2) == {}
    assert plan_parts(hot, 2) == {(0, 0): 40}
    assert plan_parts(hot, 2, 0.1) == {(0, 0): 4}
    assert plan_parts(hot, 2, 0.01) == {}


def test_plan_parts_splits_all_large_partitions_if_order_is_not_judged() -> None:
    judged = unit((1_000_000,) * 12)
    flows = tuple(replace(flow, has_positions=False) for flow in judged.flows)
    assert plan_parts(Units((judged,)), 2) == {}
    split = plan_parts(Units((replace(judged, flows=flows),)), 2)
    assert split == {(0, partition): 10 for partition in range(12)}
