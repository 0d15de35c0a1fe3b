"""What later audits change about the findings of earlier ones."""

from datetime import UTC, datetime

import pytest

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.reporting.entry_evaluation import AuditedUnit, confirmation


def at(clock: str) -> int:
    hour, minute = map(int, clock.split(":"))
    return int(datetime(2026, 7, 14, hour, minute, tzinfo=UTC).timestamp() * 1000)


MORNING = AuditedUnit(
    run_id="a",
    started_at=at("10:45"),
    window=Window(at("09:45"), at("10:45")),
    complete_up_to=at("10:45"),
    counts={Verdict.MATCHED: 1_000},
)
STOPPED = AuditedUnit(
    run_id="b",
    started_at=at("11:45"),
    window=Window(at("10:45"), at("11:45")),
    complete_up_to=at("11:26"),
    counts={Verdict.MATCHED: 900, Verdict.OVERDUE: 28, Verdict.PENDING: 5},
    oldest_open=at("11:26"),
    overdue_since=at("11:31"),
)
ARRIVED = AuditedUnit(
    run_id="c",
    started_at=at("12:00"),
    window=Window(at("11:26"), at("12:00")),
    complete_up_to=at("12:00"),
    counts={Verdict.MATCHED: 500, Verdict.LATE: 28},
)


def test_overdue_records_count_from_their_due_time() -> None:
    found = confirmation([MORNING, STOPPED])
    assert found is not None
    assert found.faults == {"overdue": 28}
    assert found.audited_up_to == at("11:26")
    assert found.sentence == (
        "audited up to 2026-07-14 11:26 UTC: 28 overdue since 2026-07-14 11:31 UTC of 1,928"
    )
    # A period that ended before they were due has no fault.
    before = confirmation([MORNING, STOPPED], until=at("11:31"))
    assert before is not None
    assert (before.faults, before.records) == ({}, 1_900)


def test_later_audit_that_finds_overdue_records_clears_the_finding() -> None:
    found = confirmation([ARRIVED, MORNING, STOPPED])
    assert found is not None
    assert found.faults == {}
    assert found.sentence == "audited up to 2026-07-14 12:00 UTC: 0 lost of 2,428"


@pytest.mark.parametrize(
    "later",
    [
        {"window": Window(at("11:27"), at("12:00"))},  # leaves out the oldest one
        {"window": Window(at("11:26"), at("11:40"))},
        {"sample": Sample(0.01)},
        {"topic": "other"},
        {"started_at": at("11:40")},
    ],
)
def test_audit_that_did_not_judge_all_overdue_records_again_clears_nothing(
    later: dict[str, object],
) -> None:
    values = {name: getattr(ARRIVED, name) for name in ARRIVED.__slots__} | later
    found = confirmation([STOPPED, AuditedUnit(**values)])
    assert found is not None
    assert found.faults == {"overdue": 28}
    assert found.audited_up_to == at("11:26")


def test_lost_records_count_until_their_whole_window_is_audited_again() -> None:
    values = {name: getattr(STOPPED, name) for name in STOPPED.__slots__}
    values["counts"] = {Verdict.LOST: 2, Verdict.OVERDUE: 28}
    lossy = AuditedUnit(**values)
    found = confirmation([lossy, ARRIVED])
    assert found is not None
    assert found.faults == {"lost": 2}
    whole = {name: getattr(ARRIVED, name) for name in ARRIVED.__slots__}
    again = AuditedUnit(**(whole | {"window": Window(at("10:45"), at("12:00"))}))
    found = confirmation([lossy, again])
    assert found is not None
    assert (found.faults, found.records) == ({}, 528)
