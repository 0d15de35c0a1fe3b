"""Late records: missed by an earlier run and found by this one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mm2slo_audit.run.late_records import MissedRecord, reclassify_late
from mm2slo_core.audit.audit_scope import Comparison, FlowScope, SourcePartition, UnitScope, Window
from mm2slo_core.audit.record_identity import Identity
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import Evidence, PartitionOutcome, UnitOutcome
from mm2slo_core.timeline_record import Side
from mm2slo_core.topology import Flow

SCOPE = UnitScope(
    index=0,
    target_topic="us.orders",
    flows=(
        FlowScope(
            Flow("us", "eu"),
            "orders",
            (SourcePartition(0, 10, 10, 200, 200, known_from=20), SourcePartition(1, 0, 0, 50, 50)),
        ),
    ),
    partitions=(),
    window=Window(1_000, 2_000),
    identity=Identity(),
)
CENSUS = Sample(1.0)
FOUND = MissedRecord(0, 0, 100, 1_500, 77)


def lost(offset: int, partition: int = 0) -> Evidence:
    return Evidence(Verdict.LOST, Side.SOURCE, 0, partition, offset, 1_500, 5, None)


def outcome(*evidence: Evidence, lost_records: int | None = None) -> UnitOutcome:
    count = len(evidence) if lost_records is None else lost_records
    counts = {Verdict.MATCHED: 30, Verdict.LOST: count}
    return UnitOutcome(
        SCOPE,
        (PartitionOutcome(0, 0, counts), PartitionOutcome(0, 1, {Verdict.MATCHED: 9})),
        evidence=evidence,
    )


def late(found: UnitOutcome) -> int:
    return found.counts.get(Verdict.LATE, 0)


def test_reclassify_late_found_record_is_late() -> None:
    found = reclassify_late(outcome(lost(40)), [FOUND, FOUND], CENSUS)
    assert found.partitions[0].counts == {Verdict.MATCHED: 29, Verdict.LATE: 1, Verdict.LOST: 1}
    assert found.partitions[1].counts == {Verdict.MATCHED: 9}
    assert found.evidence[-1] == Evidence(Verdict.LATE, Side.SOURCE, 0, 0, 100, 1_500, 77, None)


@pytest.mark.parametrize(
    "missed",
    [
        FOUND._replace(offset=40),  # still lost
        FOUND._replace(timestamp=2_000),  # after the window
        FOUND._replace(offset=9),  # gone from the source
        FOUND._replace(offset=19),  # before what is known of the flow
        FOUND._replace(offset=200),
        FOUND._replace(partition=7),
        FOUND._replace(flow=1),
    ],
)
def test_reclassify_late_missing_or_unread_record_is_unchanged(missed: MissedRecord) -> None:
    before = outcome(lost(40))
    assert reclassify_late(before, [missed], CENSUS) is before


def test_reclassify_late_record_outside_sample_is_unchanged() -> None:
    sample = Sample(0.5)
    kept = [n for n in range(100) if sample.keeps_record(n)]
    left = [n for n in range(100) if not sample.keeps_record(n)]
    assert late(reclassify_late(outcome(), [FOUND._replace(fingerprint=kept[0])], sample)) == 1
    assert late(reclassify_late(outcome(), [FOUND._replace(fingerprint=left[0])], sample)) == 0


def test_reclassify_late_beyond_capped_evidence_is_unchanged() -> None:
    capped = outcome(lost(40), lost(90), lost_records=500)
    before, beyond = FOUND._replace(offset=80), FOUND._replace(offset=91)
    found = reclassify_late(capped, [before, beyond, FOUND._replace(partition=1, offset=5)], CENSUS)
    assert late(found) == 1
    assert found.evidence[-1].offset == 80


def test_reclassify_late_possibly_pending_record_is_unchanged() -> None:
    """The earlier run had a lower max_pending: a young record may be missing."""
    (flow,) = SCOPE.flows
    behind = tuple(replace(each, next_offset=100) for each in flow.partitions)
    scope = replace(
        SCOPE, flows=(replace(flow, partitions=behind),), taken_at=2_000, max_pending=500
    )
    waiting = {Verdict.MATCHED: 30, Verdict.PENDING: 1}
    before = UnitOutcome(scope, (PartitionOutcome(0, 0, waiting),))
    assert reclassify_late(before, [FOUND], CENSUS) is before
    assert late(reclassify_late(before, [FOUND._replace(offset=99)], CENSUS)) == 1
    assert late(reclassify_late(before, [FOUND._replace(timestamp=1_499)], CENSUS)) == 1


def test_reclassify_late_compacted_topic_is_unchanged() -> None:
    before = replace(outcome(), scope=replace(SCOPE, comparison=Comparison.LATEST))
    assert reclassify_late(before, [FOUND], CENSUS) is before


def test_reclassify_late_moved_or_altered_record_is_unchanged() -> None:
    for verdict in (Verdict.MOVED, Verdict.ALTERED, Verdict.OVERDUE):
        now = replace(lost(100), verdict=verdict)
        before = UnitOutcome(SCOPE, (PartitionOutcome(0, 0, {verdict: 1}),), evidence=(now,))
        assert reclassify_late(before, [FOUND], CENSUS) is before
