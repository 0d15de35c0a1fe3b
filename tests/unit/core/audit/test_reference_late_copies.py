"""Copies that arrived after an earlier audit had read the target."""

from dataclasses import replace
from typing import Any

import pytest
from small_audit_unit import dst, found, scope, src

from mm2slo_core.audit.audit_scope import Comparison, Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.topology import Flow

EARLIER = scope(source={"end": 1_500}, target={"end": 10})
"""Read the first ten copies of a partition."""


def late(*pairs: tuple[int, int], at: int = 1_400, **changes: Any) -> int:
    """Late records of *pairs* (source and target offset), judged after `EARLIER` with *changes*."""
    records = [src(offset, n, at=at) for n, (offset, _) in enumerate(pairs)]
    records += [dst(offset, n, at=at) for n, (_, offset) in enumerate(pairs)]
    outcome = found(records, scope(earlier=(replace(EARLIER, **changes),)))
    matched = outcome.counts.get(Verdict.MATCHED, 0) + outcome.counts.get(Verdict.LATE, 0)
    assert matched == len(pairs)
    return outcome.counts.get(Verdict.LATE, 0)


def test_copies_after_an_earlier_audit_are_late_without_a_limit() -> None:
    assert late(*((n, n) for n in range(10))) == 0
    assert late(*((n, n) for n in range(1_210))) == 1_200


def test_late_copy_has_evidence_with_its_place() -> None:
    outcome = found([src(5, 1), dst(12, 1)], scope(earlier=(EARLIER,)))
    (evidence,) = outcome.evidence
    assert evidence.verdict is Verdict.LATE
    assert (evidence.offset, evidence.other_offset) == (5, 12)


@pytest.mark.parametrize(
    "changes",
    [
        {"window": Window(1_000, 1_400)},  # not judged
        {
            "taken_at": 2_000,
            "at": 1_900,
            "flows": scope(source={"next_offset": 5}).flows,
        },  # pending
        {"flows": scope(source={"known_from": 6}).flows},  # unauditable
        {"flows": scope(source={"end": 5}).flows},  # not written yet
        {"flows": tuple(replace(each, flow=Flow("ap", "t")) for each in EARLIER.flows)},
    ],
)
def test_copy_of_a_record_that_was_not_due_is_matched(changes: dict[str, Any]) -> None:
    assert late((5, 12)) == 1
    assert late((5, 12), **changes) == 0


def test_due_records_are_overdue_by_age_without_a_position() -> None:
    unknown = scope(source={"next_offset": None, "end": 1_500}).flows
    assert late((5, 12), flows=unknown) == 1
    assert late((5, 12), flows=unknown, max_pending=1_200) == 0


def test_compacted_topics_have_no_late_copies() -> None:
    unit = scope(earlier=(EARLIER,), comparison=Comparison.LATEST)
    outcome = found([src(5, 1, key=1), dst(12, 1, key=1)], unit)
    assert outcome.counts == {Verdict.MATCHED: 1}
