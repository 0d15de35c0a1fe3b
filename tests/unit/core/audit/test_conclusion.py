from collections.abc import Mapping
from dataclasses import replace

import pytest

from mm2slo_core.audit.audit_conclusion import DuplicateLimit, conclude
from mm2slo_core.audit.audit_scope import FlowScope, NotAudited, NotAuditedReason, UnitScope, Window
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import (
    FAULTS,
    AffinityOutcome,
    PartitionOutcome,
    UnitOutcome,
    Verdict,
)
from mm2slo_core.topology import Flow

NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z
US, AP = Flow("us", "eu"), Flow("ap", "eu")
LEASED = NotAudited("t", NotAuditedReason.LEASED, "held by another run")


def unit(
    counts: Mapping[Verdict, int],
    *flows: Flow,
    oldest_open: int | None = None,
    affinity: AffinityOutcome | None = None,
) -> UnitOutcome:
    scope = UnitScope(
        index=0,
        target_topic="t",
        flows=tuple(FlowScope(flow, "t", ()) for flow in flows or (US,)),
        partitions=(),
        window=Window(NOON - 3_600_000, NOON),
        identity=Identity(),
    )
    partitions = (PartitionOutcome(0, 0, counts),)
    return UnitOutcome(
        scope, partitions, affinity=affinity or AffinityOutcome(), oldest_open=oldest_open
    )


def test_conclude_without_faults_is_complete_up_to_window_end() -> None:
    found = conclude([unit({Verdict.MATCHED: 200_000})], [])
    assert (found.exit_code, found.complete_up_to) == (0, NOON)
    assert found.line == "clean; 200,000 matched; complete up to 2026-01-01T12:00:00Z"


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_conclude_with_any_fault_exits_with_1(fault: Verdict) -> None:
    found = conclude([unit({Verdict.MATCHED: 5}), unit({fault: 1})], [LEASED])
    assert found.exit_code == 1
    assert found.line.startswith(f"faults: 1 {fault}; 5 matched; 1 topic not audited; complete up")


def test_conclude_lists_findings_and_exits_with_0() -> None:
    counts = {Verdict.DUPLICATE: 1_000, Verdict.REPLAY: 3, Verdict.EXTRA: 2, Verdict.PENDING: 1}
    affinity = AffinityOutcome(keys=9, keys_split=1, keys_disordered=2)
    found = conclude([unit(counts, oldest_open=NOON - 1_500, affinity=affinity)], [])
    assert found.exit_code == 0
    assert found.line == (
        "clean; 0 matched; 1,000 duplicate, 3 replay, 2 extra, 1 pending; 1 key split; "
        "2 keys out of order; complete up to 2026-01-01T11:59:58Z"
    )


def test_conclude_with_pending_record_limits_its_flow_and_the_run() -> None:
    open_at = NOON - 60_000
    found = conclude(
        [
            unit({Verdict.MATCHED: 1}, US),
            unit({Verdict.MATCHED: 1, Verdict.OVERDUE: 1}, US, oldest_open=open_at),
            unit({Verdict.MATCHED: 1}, AP),
        ],
        [],
    )
    assert found.by_flow == {US: open_at, AP: NOON}
    assert found.complete_up_to == open_at
    assert found.exit_code == 1


def test_conclude_with_unit_of_two_flows_limits_both() -> None:
    found = conclude([unit({Verdict.PENDING: 1}, US, AP, oldest_open=NOON - 1)], [])
    assert found.by_flow == {US: NOON - 1, AP: NOON - 1}


@pytest.mark.parametrize(
    ("outcomes", "not_audited", "line"),
    [
        ([], [], "nothing could be audited: no record in the window; complete up to: unknown"),
        ([unit({})], [], "nothing could be audited: no record in the window; complete up to"),
        ([], [LEASED] * 2, "nothing could be audited: 2 topics leased; complete up to: unknown"),
        ([unit({Verdict.UNAUDITABLE: 7})], [], "nothing could be audited: 7 unauditable; complete"),
    ],
)
def test_conclude_without_audited_records_exits_with_2(
    outcomes: list[UnitOutcome], not_audited: list[NotAudited], line: str
) -> None:
    found = conclude(outcomes, not_audited)
    assert (found.exit_code, found.complete_up_to) == (2, None)
    assert found.line.startswith(line)


@pytest.mark.parametrize(
    ("limit", "result", "exit_code"),
    [
        (None, "duplicated", 0),
        (DuplicateLimit(0.87), "clean", 0),
        (DuplicateLimit(0.001, fails=True), "duplicated", 1),
    ],
)
def test_conclude_with_many_duplicates_of_one_topic(
    limit: DuplicateLimit | None, result: str, exit_code: int
) -> None:
    quiet = replace(unit({Verdict.MATCHED: 10_000_000, Verdict.DUPLICATE: 1}), copied_again=1)
    replayed = replace(unit({Verdict.MATCHED: 1_000, Verdict.REPLAY: 1_740}), copied_again=870)
    found = conclude([quiet, replayed], [], duplicates=limit)
    assert (found.result, found.exit_code) == (result, exit_code)
    if result == "duplicated":
        assert found.line.startswith("duplicated: 87% of t, above 0.1%; 10,001,000 matched; ")


def test_conclude_with_sample_shows_rate() -> None:
    found = conclude([unit({Verdict.MATCHED: 5})], [], sample=Sample(0.01))
    assert found.line.startswith("clean; 5 matched in a sample of 1%; complete up to")
    assert "sample" not in conclude([unit({Verdict.MATCHED: 5})], [], sample=Sample(1)).line
