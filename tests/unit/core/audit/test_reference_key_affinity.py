"""Affinity; compacted topics."""

from dataclasses import replace

import pytest
from small_audit_unit import NEXT, counts, dst, found, scope, src

from mm2slo_core.audit.audit_scope import AuditRecord, Comparison
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import Verdict

# Affinity.


def test_affinity_with_foreign_record_in_other_partition_is_split() -> None:
    records = [src(0, 1, key=5), dst(0, 1, key=5), dst(0, 2, key=5, partition=1, at=1_600)]
    outcome = found(records)
    assert outcome.counts == {Verdict.MATCHED: 1, Verdict.EXTRA: 1}
    assert (outcome.affinity.keys, outcome.affinity.keys_split) == (1, 1)
    assert outcome.affinity.records_moved == 1
    assert outcome.affinity.broken_keys == (5,)
    unit = scope(target={"auditable_from": 1})
    assert found(records, unit).affinity.keys == 0


def test_affinity_of_key_split_on_source_is_not_split() -> None:
    records = [src(0, 1, key=5), src(0, 2, key=5, partition=1, at=1_600)]
    copies = [dst(0, 1, key=5), dst(0, 2, key=5, partition=1, at=1_600)]
    assert found([*records, *copies]).affinity.keys_split == 0
    fewer = scope(comparison=Comparison.KEYS)
    assert found([*records, *copies], fewer).affinity.keys_split == 0
    joined = [records[0], replace(records[1], partition=0, offset=1), *copies]
    affinity = found(joined, fewer).affinity
    assert (affinity.keys_split, affinity.records_moved) == (1, 1)


def test_judge_keeps_strata_separate() -> None:
    only_key = {"in_records": False}
    only_record = {"in_keys": False}
    records = [
        src(0, 1, key=5, **only_key),
        dst(0, 1, key=5, partition=1, **only_key),
        src(1, 2, key=6, **only_record),
    ]
    outcome = found(records, sample=Sample(0.5))
    assert outcome.counts == {Verdict.LOST: 1}
    assert (outcome.affinity.keys, outcome.affinity.keys_split) == (1, 1)


def test_affinity_order_uses_key_stratum() -> None:
    records = [src(0, 1, key=5), src(1, 2, key=5), dst(1, 1, key=5), dst(0, 2, key=5)]
    affinity = found([replace(each, in_records=False) for each in records]).affinity
    assert (affinity.keys, affinity.keys_disordered, affinity.broken_keys) == (1, 1, (5,))
    affinity = found([replace(each, in_keys=False) for each in records]).affinity
    assert (affinity.keys, affinity.keys_disordered) == (0, 0)


# Compacted topics.

LATEST = Comparison.LATEST


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([src(0, 1, key=5), src(1, 2, key=5), dst(0, 2, key=5)], {Verdict.MATCHED: 1}),
        ([src(1, 2, key=5), dst(0, 1, key=5), dst(1, 2, key=5)], {Verdict.MATCHED: 1}),
        ([src(9, 2, key=5, at=1_700), dst(0, 1, key=5)], {Verdict.LOST: 1}),
        ([src(100, 2, key=5, at=1_700), dst(0, 1, key=5)], {Verdict.PENDING: 1}),
        ([src(100, 2, key=5, at=1_300), dst(0, 1, key=5, at=1_200)], {Verdict.OVERDUE: 1}),
        ([src(9, 2, key=5)], {Verdict.LOST: 1}),
        ([src(9, 2, key=5), dst(0, 1, key=5)], {Verdict.ALTERED: 1}),
        ([src(9, 2, key=5, tombstone=True)], {Verdict.MATCHED: 1}),
        ([src(9, 2, key=5, tombstone=True), dst(0, 1, key=5, at=1_400)], {Verdict.LOST: 1}),
        ([dst(0, 2, key=5, tombstone=True)], {}),
        ([dst(0, 2, key=5)], {Verdict.EXTRA: 1}),
        (
            [src(9, 2, key=5), dst(0, 3, key=5, at=1_700)],
            {Verdict.LOST: 1, Verdict.EXTRA: 1},
        ),
        # The newest in a partition is the last one, whatever the timestamps ...
        ([src(0, 1, key=5, at=1_700), src(1, 2, key=5), dst(0, 2, key=5)], {Verdict.MATCHED: 1}),
        # ... and between partitions the one with the later timestamp.
        (
            [src(9, 2, key=5, at=1_700), src(1, 1, key=5, partition=1), dst(0, 2, key=5, at=1_700)],
            {Verdict.MATCHED: 1},
        ),
        ([src(0, 1), dst(0, 2)], {Verdict.UNAUDITABLE: 1}),
        ([src(9, 2, key=5, at=900), dst(0, 1, key=5, at=800)], {}),
    ],
)
def test_latest_compares_newest_record_of_each_key(
    records: list[AuditRecord], expected: dict[Verdict, int]
) -> None:
    outcome = found(records, scope(comparison=LATEST))
    assert outcome.counts == expected
    assert not outcome.order_judged


@pytest.mark.parametrize(
    ("at", "kept", "verdict"),
    [
        (1_500, 1_000, Verdict.MATCHED),  # it is 1,000 ms old: it may have been cleaned
        (1_501, 1_000, Verdict.LOST),
        (1_501, 0, Verdict.MATCHED),
    ],
)
def test_latest_with_young_missing_tombstone_is_not_matched(
    at: int, kept: int, verdict: Verdict
) -> None:
    """The record that it deletes is before the window and not read on either side."""
    unit = scope(comparison=LATEST, tombstones_kept=kept)
    assert counts([src(9, 2, key=5, at=at, tombstone=True)], unit) == {verdict: 1}
    pending = [src(NEXT, 2, key=5, at=at, tombstone=True)]
    expected = Verdict.PENDING if verdict is Verdict.LOST else Verdict.MATCHED
    assert counts(pending, unit) == {expected: 1}


def test_latest_with_future_tombstone_is_matched() -> None:
    unit = scope(comparison=LATEST, tombstones_kept=1_000, taken_at=1_400)
    deleted = [src(9, 2, key=5, tombstone=True)]
    assert counts(deleted, unit) == {Verdict.MATCHED: 1}


def test_latest_of_two_flows_matches_later_writer() -> None:
    unit = scope(flows=2, comparison=LATEST)
    records = [src(0, 1, key=5), src(0, 2, key=5, flow=1, at=1_600)]
    assert counts([*records, dst(0, 2, key=5, at=1_600)], unit) == {Verdict.MATCHED: 2}
    assert counts([*records, dst(0, 3, key=5, at=1_100)], unit) == {Verdict.LOST: 2}
    deleted = [src(0, 1, key=5), src(0, 2, key=5, flow=1, tombstone=True)]
    assert counts(deleted, unit) == {Verdict.MATCHED: 2}


def test_latest_compares_key_stratum() -> None:
    by_key = [src(n, 1, key=6 + n, in_records=False) for n in (1, 2)]
    records = [src(0, 1, key=5, in_keys=False), *by_key]
    assert counts(records, scope(comparison=LATEST), Sample(0.5)) == {Verdict.LOST: 2}
