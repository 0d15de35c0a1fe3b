"""Equal records on a target with LogAppendTime, which cuts distinguish or not."""

from dataclasses import replace

import pytest
from small_audit_unit import counts, dst, found, scope, src

from mm2slo_core.audit.audit_scope import Comparison, Cut, TimestampType, UnitScope
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.unit_outcome import Verdict

CUTS = (Cut(20, 120), Cut(40, 140), Cut(60, 160))


def stamped(cuts: tuple[Cut, ...] = CUTS) -> UnitScope:
    return scope(
        source={"cuts": cuts},
        identity=Identity().without_timestamp(),
        target_time=TimestampType.LOG_APPEND,
    )


def test_buckets_separate_loss_from_equal_foreign_record() -> None:
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
        # Out of order across one cut, in both directions and at both parities of the bucket.
        (19, 120, {Verdict.MATCHED: 1}),
        (20, 119, {Verdict.MATCHED: 1}),
        (39, 140, {Verdict.MATCHED: 1}),
        (40, 139, {Verdict.MATCHED: 1}),
        # Across two cuts.
        (19, 140, {Verdict.LOST: 1, Verdict.DUPLICATE: 1}),
        (60, 139, {Verdict.LOST: 1, Verdict.DUPLICATE: 1}),
    ],
)
def test_buckets_match_copy_beyond_one_cut(
    source: int, target: int, verdicts: dict[Verdict, int]
) -> None:
    assert counts([src(source, 7), dst(target, 7)], stamped()) == verdicts


def test_buckets_prefer_own_bucket_to_neighbours() -> None:
    # The bucket of 25 has its own copy, and 5 can only pair with that of the next bucket.
    records = [src(5, 7), src(25, 7), dst(125, 7), dst(145, 7)]
    outcome = found(records, stamped())
    assert dict(outcome.counts) == {Verdict.MATCHED: 1, Verdict.LOST: 1, Verdict.DUPLICATE: 1}
    assert [e.offset for e in outcome.evidence] == [5, 145]


def test_buckets_pair_equal_records_of_neighbours_in_order() -> None:
    assert counts([src(5, 7), src(25, 7), dst(125, 7), dst(135, 7)], stamped()) == {
        Verdict.MATCHED: 2
    }


def test_buckets_with_loss_keep_later_pairs() -> None:
    lost = [src(offset, 7) for offset in (5, 25, 45, 65)]
    copies = [dst(offset, 7) for offset in (125, 145, 165, 175)]
    outcome = found([*lost, *copies], stamped())
    assert dict(outcome.counts) == {Verdict.MATCHED: 3, Verdict.LOST: 1, Verdict.DUPLICATE: 1}


def test_buckets_with_copy_in_other_partition_is_moved() -> None:
    assert counts([src(5, 7), dst(170, 7, partition=1)], stamped()) == {Verdict.MOVED: 1}


def test_cuts_apply_only_without_timestamps() -> None:
    unit = stamped()
    assert unit.bucketed
    assert not replace(unit, identity=Identity()).bucketed
    assert not replace(unit, comparison=Comparison.KEYS).bucketed
    assert not replace(unit, flows=unit.flows * 2).bucketed
    assert not stamped(()).bucketed
