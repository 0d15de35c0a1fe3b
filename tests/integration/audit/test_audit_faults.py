"""The audit's outcome for each topic of the scenario, compared with the truth."""

import pytest
from accuracy.lab_accuracy import equal_newest
from audit_scenario.scenario_run import AuditScenario
from audit_scenario.scenario_steps import (
    BALANCED,
    BOTH_STAMPED,
    CLEAN,
    COMPACTED,
    EXPIRED,
    FAULTS,
    MORE_PARTITIONS,
    REPLAY,
    TARGET_STAMPED,
    TRANSACTIONS,
    UNUSUAL,
)
from fault_injection import Found, counterparts, named, replays

from mm2slo_core.audit.audit_conclusion import conclude
from mm2slo_core.audit.audit_scope import Comparison, TimestampType
from mm2slo_core.audit.unit_outcome import FAULTS as FAULT_VERDICTS
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]


def counts(scenario: AuditScenario, name: str) -> dict[Verdict, int]:
    return {verdict: n for verdict, n in scenario.outcome(name).counts.items() if n}


def test_audit_covers_every_topic(scenario: AuditScenario) -> None:
    assert scenario.result.not_audited == ()


@pytest.mark.parametrize("name", [FAULTS, BALANCED, COMPACTED])
def test_evidence_names_exactly_the_injected_faults(scenario: AuditScenario, name: str) -> None:
    truth, evidence = scenario.topics.injectors[name].truth, scenario.outcome(name).evidence
    assert named(evidence) == truth.named()
    assert counterparts(evidence) == truth.counterparts


def test_counts_equal_injected_faults(scenario: AuditScenario) -> None:
    truth = scenario.topics.injectors[FAULTS].truth
    assert counts(scenario, FAULTS) == {Verdict.MATCHED: 1_400, **truth.counts()}


def test_loss_and_duplicate_do_not_cancel_out(scenario: AuditScenario) -> None:
    assert len(scenario.source[BALANCED]) == len(scenario.target[BALANCED]) == 201
    assert counts(scenario, BALANCED) == {
        Verdict.MATCHED: 200,
        Verdict.LOST: 1,
        Verdict.DUPLICATE: 1,
    }


def test_replay_after_kill_equals_independent_full_read(scenario: AuditScenario) -> None:
    outcome, read = scenario.outcome(REPLAY), scenario.reads[REPLAY]
    found = named(outcome.evidence)
    expected = {Found(Side.TARGET, *place) for place in read.duplicates}
    assert len(expected) >= 1_000
    assert found == {Verdict.REPLAY: expected}
    assert counts(scenario, REPLAY) == {
        Verdict.MATCHED: len(read.pairs),
        Verdict.REPLAY: len(expected),
    }


def test_replay_is_one_event_per_partition(scenario: AuditScenario) -> None:
    found = [((each.partition, each.start), each.size) for each in scenario.outcome(REPLAY).replays]
    assert found == replays(scenario.reads[REPLAY].duplicates)
    assert len(found) == 2


def test_expired_records_are_counted_exactly(scenario: AuditScenario) -> None:
    assert counts(scenario, EXPIRED) == {
        Verdict.MATCHED: 50,
        Verdict.EXPIRED: 200,
        # Replicated, then deleted from the source.
        Verdict.UNAUDITABLE: 500,
    }


def test_census_with_running_traffic_finds_no_fault(scenario: AuditScenario) -> None:
    found = counts(scenario, CLEAN)
    assert found[Verdict.MATCHED] > 10_000
    open_records = found.get(Verdict.PENDING, 0) + found.get(Verdict.UNAUDITABLE, 0)
    assert open_records <= 0.05 * sum(found.values())
    assert set(found) <= {Verdict.MATCHED, Verdict.PENDING, Verdict.UNAUDITABLE}
    # Records after the window were produced during the audit.
    newest = max(each.content.timestamp for each in scenario.source[CLEAN])
    assert newest > scenario.outcome(CLEAN).scope.window.end
    assert conclude([scenario.outcome(CLEAN)], ()).exit_code == 0


@pytest.mark.parametrize(
    ("name", "matched"),
    [
        (TRANSACTIONS, 600),
        (UNUSUAL, 90),
        (TARGET_STAMPED, 8_000),
        (BOTH_STAMPED, 8_000),
        (MORE_PARTITIONS, 3_000),
    ],
)
def test_audit_of_other_topics_finds_no_fault(
    scenario: AuditScenario, name: str, matched: int
) -> None:
    """Open and aborted transactions, nulls and large records, other timestamps, partitions."""
    assert counts(scenario, name) == {Verdict.MATCHED: matched}


def test_audit_compares_newest_records_of_compacted_topic(scenario: AuditScenario) -> None:
    newest = equal_newest(scenario.source[COMPACTED], scenario.target[COMPACTED])
    assert counts(scenario, COMPACTED) == {Verdict.MATCHED: newest, Verdict.LOST: 3}
    assert newest == 101


def test_comparison_follows_topic_settings(scenario: AuditScenario) -> None:
    assert scenario.outcome(COMPACTED).scope.comparison is Comparison.LATEST
    assert scenario.outcome(MORE_PARTITIONS).scope.comparison is Comparison.KEYS
    assert scenario.outcome(FAULTS).scope.comparison is Comparison.RECORDS
    for name in (TARGET_STAMPED, BOTH_STAMPED):
        assert scenario.outcome(name).scope.target_time is TimestampType.LOG_APPEND


def test_keys_on_more_target_partitions_are_not_split(scenario: AuditScenario) -> None:
    affinity = scenario.outcome(MORE_PARTITIONS).affinity
    assert (affinity.keys, affinity.keys_split, affinity.keys_disordered) == (50, 0, 0)


def test_audit_with_faults_exits_with_1(scenario: AuditScenario) -> None:
    conclusion = scenario.result.conclusion
    assert conclusion.exit_code == 1
    assert "complete up to" in conclusion.line
    for verdict in FAULT_VERDICTS - {Verdict.OVERDUE, Verdict.UNMASKED}:
        assert str(verdict) in conclusion.line


def test_audit_of_stopped_flow_reports_overdue_and_exits_with_1(scenario: AuditScenario) -> None:
    (outcome,) = scenario.stopped.outcomes.values()
    found = {verdict: n for verdict, n in outcome.counts.items() if n}
    assert found == {Verdict.MATCHED: 20, Verdict.OVERDUE: 30}
    assert [(each.verdict, each.offset) for each in outcome.evidence] == [
        (Verdict.OVERDUE, offset) for offset in range(20, 50)
    ]
    conclusion = scenario.stopped.conclusion
    assert conclusion.exit_code == 1
    assert "30 overdue" in conclusion.line
    # All records from before the stop are replicated.
    assert conclusion.complete_up_to is not None
    assert conclusion.complete_up_to >= scenario.stopped_at
