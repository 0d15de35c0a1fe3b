"""Which slices are looked at, and which parts of a partition meet."""

from __future__ import annotations

from mm2slo_audit.engine.group_marks import (
    DECIDED,
    DUPLICATED,
    MISSING,
    OVERTAKEN,
    UNEXPLAINED,
    Mark,
)
from mm2slo_audit.engine.partition_parts import Span, overlaps, parts
from mm2slo_audit.engine.slice_selection import choose, merged
from mm2slo_audit.engine.time_slices import FINE, TimeSlices
from mm2slo_audit.engine.unit_columns import Units
from mm2slo_core.audit.audit_scope import (
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.record_identity import Identity
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.topology import Flow

OVERDUE = MISSING | DECIDED | 1 << 6
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
        window=Window(0, FINE * (1 << 14)),
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
) -> Mark:
    flow = None if flags & UNEXPLAINED else 0
    return Mark(0, partition, flow, flags, coarse, 1, fine, low, high, oldest)


def test_a_slice_of_a_millisecond() -> None:
    assert SLICES.width(unit()) == 1
    assert SLICES.at(unit(), 65) == (1, 2)
    assert SLICES.at(unit(), 63) == (0, -(1 << 63))


def test_marks_say_what_became_of_their_records() -> None:
    assert mark(OVERDUE, 0, 1).told is Verdict.OVERDUE
    assert mark(EXTRA, 0, 1).told is Verdict.EXTRA
    assert mark(DUPLICATED, 0, 1).told is None


def test_told_records_are_looked_at_as_evidence_only() -> None:
    found = [mark(OVERDUE, at, 0b11, low=at, oldest=FINE * at) for at in range(10)]
    choice = choose(found, SLICES, cap=2)
    assert dict(choice.masks) == {(0, 0, 0): 0b11, (0, 0, 1): 0b11}
    assert choice.oldest == {0: 0}


def test_what_may_have_moved_is_looked_at_where_both_sides_have_something_left() -> None:
    missing = [mark(OVERDUE, at, 0b11, low=at, oldest=FINE * at) for at in range(10)]
    found = [*missing, mark(EXTRA, 0, 0b01, low=7, partition=1)]
    choice = choose(found, SLICES, cap=1)
    # The first may have moved, so that another one may be the first of those that have not.
    assert dict(choice.masks) == {(0, 0, 0): 0b11, (0, 0, 1): 0b11, (0, 1, 0): 0b01}
    assert choice.oldest == {0: FINE}


def test_ranges_of_overtaken_records_are_looked_at() -> None:
    found = [mark(OVERTAKEN, 0, 1, 5, high=9), mark(OVERTAKEN | DUPLICATED, 3, 4, 8, high=20)]
    choice = choose(found, SLICES, cap=1)
    assert dict(choice.ranges) == {(0, 0, 1): [(5, 9), (8, 20)]}
    assert dict(choice.masks) == {(0, 0, 3): 4}
    assert merged([(8, 20), (5, 9), (22, 22), (21, 21)]) == [(5, 22)]


def test_parts_meet_where_their_offsets_do() -> None:
    apart = [Span(0, 0, 9, 0, 9), Span(1, 10, 19, 10, 19)]
    assert overlaps(apart) == ([], [])
    # The last of the first part is far behind on the source, and the second ahead on the target.
    meeting = [Span(0, 0, 25, 0, 9), Span(1, 10, 19, 8, 19), Span(2, 20, 30, 20, 30)]
    assert overlaps(meeting) == ([(10, 25), (20, 25)], [(8, 9)])


def test_a_partition_that_holds_up_the_others_is_split() -> None:
    even, hot = Units((unit((2_000_000,) * 12),)), Units((unit((20_000_000, 1_000)),))
    assert parts(even, 2) == {}
    assert parts(hot, 2) == {(0, 0): 40}
