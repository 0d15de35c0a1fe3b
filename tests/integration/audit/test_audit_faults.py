"""What the audit says of each topic of the story, against what is true of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from accuracy.lab_accuracy import equal_newest
from audited import (
    APPENDED,
    BALANCED,
    CLEAN,
    COMPACTED,
    EXPIRED,
    FAULTS,
    ODD,
    REPLAY,
    STAMPED,
    TRANSACTIONS,
    WIDER,
)
from fault_injection import Found, counterparts, named, replays

from mm2slo_core.audit.audit_scope import Comparison, TimestampType
from mm2slo_core.audit.conclusion import conclude
from mm2slo_core.audit.record_verdict import FAULTS as FAULT_VERDICTS
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from audited import Told

pytestmark = pytest.mark.lab


def counts(told: Told, name: str) -> dict[Verdict, int]:
    return {verdict: n for verdict, n in told.outcome(name).counts.items() if n}


def test_every_topic_was_audited(told: Told) -> None:
    assert told.audited.not_audited == ()


@pytest.mark.parametrize("name", [FAULTS, BALANCED, COMPACTED])
def test_each_fault_is_named_by_its_offset_and_nothing_else_is(told: Told, name: str) -> None:
    truth, evidence = told.story.injectors[name].truth, told.outcome(name).evidence
    assert named(evidence) == truth.named()
    assert counterparts(evidence) == truth.counterparts


def test_counts_agree_with_evidence(told: Told) -> None:
    truth = told.story.injectors[FAULTS].truth
    assert counts(told, FAULTS) == {Verdict.MATCHED: 1_400, **truth.counts()}


def test_a_loss_and_a_duplicate_do_not_cancel(told: Told) -> None:
    assert len(told.source[BALANCED]) == len(told.target[BALANCED]) == 201
    assert counts(told, BALANCED) == {
        Verdict.MATCHED: 200,
        Verdict.LOST: 1,
        Verdict.DUPLICATE: 1,
    }


def test_duplicates_after_a_kill_are_those_of_an_independent_full_read(told: Told) -> None:
    outcome, read = told.outcome(REPLAY), told.reads[REPLAY]
    found = named(outcome.evidence)
    expected = {Found(Side.TARGET, *place) for place in read.duplicates}
    assert len(expected) >= 1_000
    assert found == {Verdict.REPLAY: expected}
    assert counts(told, REPLAY) == {
        Verdict.MATCHED: len(read.pairs),
        Verdict.REPLAY: len(expected),
    }


def test_a_replay_is_one_event_of_each_partition(told: Told) -> None:
    found = [((each.partition, each.start), each.size) for each in told.outcome(REPLAY).replays]
    assert found == replays(told.reads[REPLAY].duplicates)
    assert len(found) == 2


def test_what_left_the_source_before_it_was_copied_is_counted_exactly(told: Told) -> None:
    assert counts(told, EXPIRED) == {
        Verdict.MATCHED: 50,
        Verdict.EXPIRED: 200,
        # Copied before, and gone from the source since.
        Verdict.UNAUDITABLE: 500,
    }


def test_a_census_with_traffic_running_is_clean(told: Told) -> None:
    found = counts(told, CLEAN)
    assert found[Verdict.MATCHED] > 205_000
    open_records = found.get(Verdict.PENDING, 0) + found.get(Verdict.UNAUDITABLE, 0)
    assert open_records <= 0.05 * sum(found.values())
    assert set(found) <= {Verdict.MATCHED, Verdict.PENDING, Verdict.UNAUDITABLE}
    # Records came while it was audited: later ones than those of the window.
    newest = max(each.content.timestamp for each in told.source[CLEAN])
    assert newest > told.outcome(CLEAN).scope.window.end
    assert conclude([told.outcome(CLEAN)], ()).exit_code == 0


@pytest.mark.parametrize(
    ("name", "matched"),
    [
        (TRANSACTIONS, 600),
        (ODD, 90),
        (APPENDED, 8_000),
        (STAMPED, 8_000),
        (WIDER, 3_000),
    ],
)
def test_other_kinds_of_topics_are_clean(told: Told, name: str, matched: int) -> None:
    """Open and aborted transactions, nulls and large records, other timestamps, partitions."""
    assert counts(told, name) == {Verdict.MATCHED: matched}


def test_of_a_compacted_topic_the_newest_records_are_compared(told: Told) -> None:
    newest = equal_newest(told.source[COMPACTED], told.target[COMPACTED])
    assert counts(told, COMPACTED) == {Verdict.MATCHED: newest, Verdict.LOST: 3}
    assert newest == 101


def test_topics_are_compared_as_they_are(told: Told) -> None:
    assert told.outcome(COMPACTED).scope.comparison is Comparison.LATEST
    assert told.outcome(WIDER).scope.comparison is Comparison.KEYS
    assert told.outcome(FAULTS).scope.comparison is Comparison.RECORDS
    for name in (APPENDED, STAMPED):
        assert told.outcome(name).scope.target_time is TimestampType.LOG_APPEND


def test_keys_in_more_partitions_than_on_the_source_are_not_split(told: Told) -> None:
    affinity = told.outcome(WIDER).affinity
    assert (affinity.keys, affinity.keys_split, affinity.keys_disordered) == (50, 0, 0)


def test_faults_end_the_run_with_1(told: Told) -> None:
    conclusion = told.audited.conclusion
    assert conclusion.exit_code == 1
    assert "complete up to" in conclusion.line
    for verdict in FAULT_VERDICTS - {Verdict.OVERDUE}:
        assert str(verdict) in conclusion.line


def test_a_stopped_flow_is_overdue_and_the_command_exits_with_1(told: Told) -> None:
    assert told.stopped.exit_code == 1, told.stopped.said
    (topic,) = told.stopped.report["topics"]
    found = {verdict: n for verdict, n in topic["counts"].items() if n}
    assert found == {Verdict.MATCHED: 20, Verdict.OVERDUE: 30}
    assert [(each["verdict"], each["offset"]) for each in topic["evidence"]] == [
        (Verdict.OVERDUE, offset) for offset in range(20, 50)
    ]
    # All that came before the stop is complete.
    assert topic["complete_up_to_ms"] >= told.stopped_at
    assert "30 overdue" in told.stopped.said
    assert "complete up to" in told.stopped.said
