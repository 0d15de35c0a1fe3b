"""Views of the page from rows of the results store."""

from dataclasses import replace
from typing import Any

import pytest
from sample_report import EAST, HOUR_MS, NOW, WEST

from mm2slo_core.audit.audit_scope import (
    Comparison,
    NotAudited,
    NotAuditedReason,
    TimestampType,
    Window,
)
from mm2slo_core.audit.unit_outcome import (
    AffinityOutcome,
    Evidence,
    LatencyCells,
    Verdict,
    latency_bucket,
)
from mm2slo_core.records.timeline_record import Side
from mm2slo_report.rendering.page_views import audit_view, latency_view
from mm2slo_store.audit_rows import (
    EvidencePlace,
    Run,
    RunHeader,
    RunState,
    StoredEvidence,
    StoredFlow,
    StoredUnit,
    UnitKey,
)

WINDOW = Window(NOW - HOUR_MS, NOW)
RUN = Run(
    RunHeader(
        id="20260714T103000Z-0a1b2c",
        flows=(WEST,),
        window=WINDOW,
        started_at=NOW,
        sample_rate=1.0,
        salt=0,
        config_hash="",
    ),
    RunState.FINISHED,
    verdict_line="faults: 2 lost",
    complete_up_to=NOW,
)


def unit(topic: str = "us.orders", **named: Any) -> StoredUnit:
    found = StoredUnit(
        run_id=RUN.header.id,
        unit=0,
        key=UnitKey.named(topic, (WEST,)),
        window=WINDOW,
        flows=(StoredFlow(WEST, "orders"),),
        not_audited=None,
        counts={Verdict.MATCHED: 98, Verdict.LOST: 2, Verdict.MOVED: 0, Verdict.DUPLICATE: 7},
        copied_again=7,
        source_bytes=0,
        end_to_end=LatencyCells({(latency_bucket(100), latency_bucket(200)): 300}),
        transfer=LatencyCells(),
        without_bracket=0,
        affinity=AffinityOutcome(),
        bounds=(),
        comparison=Comparison.RECORDS,
        target_time=TimestampType.CREATE,
        keyed=False,
        oldest_open=None,
        order_judged=True,
    )
    return replace(found, **named)


def test_audit_view_sums_units() -> None:
    not_audited = NotAudited("us.secret", NotAuditedReason.AUTHORIZATION, "Describe was refused")
    found = audit_view(
        RUN,
        [unit(), unit("us.payments"), unit("us.secret", counts={}, not_audited=not_audited)],
        [
            StoredEvidence(
                EvidencePlace(0, RUN.header.id, 0, 0),
                "us.orders",
                WEST,
                Evidence(Verdict.LOST, Side.SOURCE, 0, 3, 41, NOW, 1, None),
            )
        ],
    )
    assert found.counts == {"matched": 196, "lost": 4, "duplicate": 14}
    # Duplicates are findings, not faults.
    assert found.faults == 4
    assert found.problems == ("us.secret (authorization: Describe was refused)",)
    (lost,) = (each.evidence for each in found.evidence)
    assert (lost.verdict, lost.side, lost.partition, lost.offset) == ("lost", "source", 3, 41)
    assert found.run == RUN


def test_latency_view_has_bounds_of_known_percentiles() -> None:
    found = latency_view(RUN, WEST, [unit(), unit("us.payments")])
    assert found is not None
    assert found.records == 600
    assert [*found.percentiles] == [0.5, 0.9, 0.95, 0.99]
    for each in found.percentiles.values():
        assert each.lower == pytest.approx(0.1, rel=0.05)
        assert each.upper == pytest.approx(0.2, rel=0.05)
    assert found.origin == "audit of 2026-07-14 09:30 UTC to 2026-07-14 10:30 UTC"


def test_latency_view_of_shared_topic_is_none() -> None:
    shared = unit(flows=(StoredFlow(WEST, "orders"), StoredFlow(EAST, "orders")))
    assert latency_view(RUN, WEST, [shared]) is None
    assert latency_view(RUN, WEST, []) is None
