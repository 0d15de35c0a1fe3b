"""Verdicts on source records; groups of equal records."""

from dataclasses import replace
from typing import Any

import pytest
from small_audit_unit import counts, dst, found, scope, src

from mm2slo_core.audit.audit_scope import AuditRecord, Comparison
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import Verdict

# Missing records: verdicts and their precedence.


@pytest.mark.parametrize(
    ("record", "source", "verdict"),
    [
        (src(99, 1), {}, Verdict.LOST),
        (src(100, 1), {}, Verdict.PENDING),
        (src(100, 1, at=1_499), {}, Verdict.OVERDUE),
        (src(99, 1), {"next_offset": None}, Verdict.PENDING),
        (src(99, 1, at=1_499), {"next_offset": None}, Verdict.OVERDUE),
        (src(9, 1), {"known_from": 10}, Verdict.UNAUDITABLE),
        (src(10, 1), {"known_from": 10}, Verdict.LOST),
    ],
)
def test_missing_record_verdicts(
    record: AuditRecord, source: dict[str, Any], verdict: Verdict
) -> None:
    assert counts([record], scope(source=source)) == {verdict: 1}


def test_further_copies_of_a_moved_record_are_duplicates() -> None:
    records = [src(1, 7, key=5), *(dst(3 + n, 7, key=5, partition=1) for n in range(2))]
    outcome = found(records)
    assert outcome.counts == {Verdict.MOVED: 1, Verdict.DUPLICATE: 1}
    _, duplicate = outcome.evidence
    assert (duplicate.flow, duplicate.partition, duplicate.offset) == (0, 1, 4)
    # The whole block that moved was copied again.
    block = [src(n, n) for n in range(3)]
    again = [dst(3 * n + content, content, partition=1) for n in range(2) for content in range(3)]
    outcome = found([*block, *again])
    assert outcome.counts == {Verdict.MOVED: 3, Verdict.REPLAY: 3}


def test_further_copy_of_a_matched_record_in_another_partition_is_a_duplicate() -> None:
    outcome = found([src(1, 7, key=5), dst(3, 7, key=5), dst(4, 7, key=5, partition=1)])
    assert outcome.counts == {Verdict.MATCHED: 1, Verdict.DUPLICATE: 1}
    (duplicate,) = outcome.evidence
    assert (duplicate.flow, duplicate.partition, duplicate.offset) == (0, 1, 4)
    # Rather than the altered copy of a missing record.
    records = [src(1, 7, key=5), src(2, 8, key=5), dst(3, 7, key=5), dst(4, 7, key=5, partition=1)]
    assert counts(records) == {Verdict.MATCHED: 1, Verdict.LOST: 1, Verdict.DUPLICATE: 1}


def test_missing_record_prefers_moved_then_altered() -> None:
    unit = scope(source={"known_from": 50})
    moved = [src(1, 7, key=5), dst(3, 7, key=5, partition=1)]
    assert counts(moved, unit) == {Verdict.MOVED: 1}
    altered = [src(1, 7, key=5), dst(3, 8, key=5, partition=1)]
    assert counts(altered, unit) == {Verdict.ALTERED: 1}
    both = [src(1, 7, key=5), dst(3, 8, key=5), dst(4, 7, key=5, partition=1)]
    assert counts(both, unit) == {Verdict.MOVED: 1, Verdict.EXTRA: 1}
    evidence = found(moved).evidence
    assert [(e.partition, e.offset, e.other_partition, e.other_offset) for e in evidence] == [
        (0, 1, 1, 3)
    ]


@pytest.mark.parametrize(
    ("copy", "verdict"),
    [
        (dst(0, 8, key=5, at=1_501), Verdict.LOST),
        (dst(0, 8, key=6), Verdict.LOST),
        (dst(0, 8), Verdict.LOST),
        (dst(0, 8, key=5), Verdict.ALTERED),
    ],
)
def test_altered_requires_equal_key_and_timestamp(copy: AuditRecord, verdict: Verdict) -> None:
    assert verdict in counts([src(1, 7, key=5), copy])


def test_altered_without_key_requires_same_partition() -> None:
    assert counts([src(1, 7), dst(0, 8)]) == {Verdict.ALTERED: 1}
    apart = [src(1, 7), dst(0, 8, partition=1)]
    assert counts(apart) == {Verdict.LOST: 1, Verdict.EXTRA: 1}
    assert counts(apart, scope(comparison=Comparison.KEYS)) == {Verdict.ALTERED: 1}


def test_copy_matches_one_missing_record_in_offset_order() -> None:
    records = [src(4, 7, key=5), src(2, 6, key=5), dst(0, 8, key=5)]
    evidence = found(records).evidence
    assert [(e.verdict, e.offset) for e in evidence] == [(Verdict.LOST, 4), (Verdict.ALTERED, 2)]
    evidence = found([*records, dst(1, 9, key=5)]).evidence
    assert [(e.offset, e.other_offset) for e in evidence] == [(2, 0), (4, 1)]


# Groups.


def test_loss_and_duplicate_in_one_window_do_not_cancel() -> None:
    records = [src(0, 1), src(1, 2), dst(0, 1), dst(1, 1)]
    assert counts(records) == {Verdict.MATCHED: 1, Verdict.LOST: 1, Verdict.DUPLICATE: 1}


def test_identical_records_with_missing_copy_lose_the_last() -> None:
    same = [src(n, 1) for n in (98, 99, 100)]
    assert counts([*same, *(dst(n, 1) for n in range(3))]) == {Verdict.MATCHED: 3}
    assert counts([*same, dst(0, 1)]) == {
        Verdict.MATCHED: 1,
        Verdict.LOST: 1,
        Verdict.PENDING: 1,
    }
    surplus = found([src(0, 1), *(dst(n, 1) for n in (5, 6, 7, 20))]).evidence
    assert [each.offset for each in surplus] == [6, 7, 20]


def test_group_ignores_timestamp_outside_identity() -> None:
    records = [src(0, 1), dst(0, 1, at=1_800)]
    assert counts(records) == {Verdict.LOST: 1, Verdict.EXTRA: 1}
    unstamped = scope(identity=Identity(timestamp=False))
    assert counts(records, unstamped) == {Verdict.MATCHED: 1}
    # Without timestamps an altered record has nothing to match by.
    altered = [src(0, 1, key=5), dst(0, 2, key=5)]
    assert counts(altered, unstamped) == {Verdict.LOST: 1, Verdict.EXTRA: 1}


def test_records_outside_window_match_but_do_not_count() -> None:
    edges = [src(0, 1, at=999), src(1, 2, at=1_000), src(2, 3, at=1_999), src(3, 4, at=2_000)]
    assert counts(edges) == {Verdict.LOST: 2}
    extras = [dst(0, 1, at=999), dst(1, 2, at=1_000), dst(2, 3, at=1_999), dst(3, 4, at=2_000)]
    assert counts(extras) == {Verdict.EXTRA: 2}
    unstamped = scope(identity=Identity(timestamp=False))
    assert counts([src(0, 1), dst(0, 1, at=2_100)], unstamped) == {Verdict.MATCHED: 1}


def test_judge_ignores_records_of_other_units() -> None:
    other = [replace(src(0, 1), topic=1), replace(dst(0, 2), topic=1)]
    assert counts(other) == {}


def test_judge_with_partition_outside_scope_raises_key_error() -> None:
    with pytest.raises(KeyError):
        found([src(0, 1, partition=7)])


def test_records_without_a_key_in_a_compacted_topic_are_unauditable() -> None:
    unit = scope(comparison=Comparison.LATEST)
    copied = [src(0, 1, key=3), dst(0, 1, key=3), src(1, 2), dst(1, 2)]
    lost = [src(2, 3), src(3, 4, at=999)]
    assert counts([*copied, *lost], unit) == {Verdict.MATCHED: 1, Verdict.UNAUDITABLE: 2}
    outside_keys = [replace(each, in_keys=each.key_hash is not None) for each in lost]
    assert counts(outside_keys, unit, Sample(0.5)) == {Verdict.UNAUDITABLE: 1}
    assert not counts([replace(each, in_records=False) for each in outside_keys], unit)
