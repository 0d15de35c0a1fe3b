"""Equal records of a target that stamps them itself: what cuts tell apart, and what they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from one_unit import counts, dst, found, scope, src

from mm2slo_core.audit.audit_scope import Comparison, Cut, TimestampType
from mm2slo_core.audit.record_identity import Identity
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from mm2slo_core.audit.audit_scope import UnitScope

CUTS = (Cut(20, 120), Cut(40, 140), Cut(60, 160))


def stamped(cuts: tuple[Cut, ...] = CUTS) -> UnitScope:
    return scope(
        source={"cuts": cuts},
        identity=Identity().without_timestamp(),
        target_time=TimestampType.LOG_APPEND,
    )


def test_a_loss_and_an_equal_foreign_record_cancel_by_count_alone() -> None:
    records = [src(5, 7), src(70, 7), dst(170, 7, at=1_600), dst(175, 7, at=1_601)]
    assert counts(records, stamped(())) == {Verdict.MATCHED: 2}
    outcome = found(records, stamped())
    assert dict(outcome.counts) == {
        Verdict.MATCHED: 1,
        Verdict.LOST: 1,
        Verdict.DUPLICATE: 1,
    }
    assert [(e.verdict, e.offset) for e in outcome.evidence] == [
        (Verdict.LOST, 5),
        (Verdict.DUPLICATE, 175),
    ]


@pytest.mark.parametrize(
    ("source", "target", "verdicts"),
    [
        # Copies that overtook across one cut, either way and at either parity of the bucket.
        (19, 120, {Verdict.MATCHED: 1}),
        (20, 119, {Verdict.MATCHED: 1}),
        (39, 140, {Verdict.MATCHED: 1}),
        (40, 139, {Verdict.MATCHED: 1}),
        # Beyond two.
        (19, 140, {Verdict.LOST: 1, Verdict.DUPLICATE: 1}),
        (60, 139, {Verdict.LOST: 1, Verdict.DUPLICATE: 1}),
    ],
)
def test_a_copy_may_lie_beyond_one_cut(
    source: int, target: int, verdicts: dict[Verdict, int]
) -> None:
    assert counts([src(source, 7), dst(target, 7)], stamped()) == verdicts


def test_what_a_bucket_holds_goes_before_what_its_neighbours_do() -> None:
    # The bucket of 25 has its own copy, and 5 has none within reach but the one after it.
    records = [src(5, 7), src(25, 7), dst(125, 7), dst(145, 7)]
    outcome = found(records, stamped())
    assert dict(outcome.counts) == {Verdict.MATCHED: 1, Verdict.LOST: 1, Verdict.DUPLICATE: 1}
    assert [e.offset for e in outcome.evidence] == [5, 145]


def test_equal_records_that_neighbours_lend_a_copy_overtake_nobody() -> None:
    assert counts([src(5, 7), src(25, 7), dst(125, 7), dst(135, 7)], stamped()) == {
        Verdict.MATCHED: 2
    }


def test_a_loss_does_not_move_the_copies_after_it() -> None:
    lost = [src(offset, 7) for offset in (5, 25, 45, 65)]
    copies = [dst(offset, 7) for offset in (125, 145, 165, 175)]
    outcome = found([*lost, *copies], stamped())
    assert dict(outcome.counts) == {Verdict.MATCHED: 3, Verdict.LOST: 1, Verdict.DUPLICATE: 1}


def test_a_record_in_another_partition_is_moved_whatever_its_bucket() -> None:
    assert counts([src(5, 7), dst(170, 7, partition=1)], stamped()) == {Verdict.MOVED: 1}


def test_cuts_count_where_nothing_else_tells() -> None:
    unit = stamped()
    assert unit.bucketed
    assert not replace(unit, identity=Identity()).bucketed
    assert not replace(unit, comparison=Comparison.KEYS).bucketed
    assert not replace(unit, flows=unit.flows * 2).bucketed
    assert not stamped(()).bucketed
