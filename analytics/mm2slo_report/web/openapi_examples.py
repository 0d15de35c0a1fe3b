"""Examples for the OpenAPI document: an invented flow, rendered by the functions of the routes."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.audit.audit_scope import Comparison, TimestampType, Window
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import AffinityOutcome, Evidence, LatencyCells
from mm2slo_core.objectives import Objective, Severity
from mm2slo_core.objectives.exclusion import Exclusion, Span
from mm2slo_core.objectives.exclusion_document import exclusion_document
from mm2slo_core.reporting.budget_series import series
from mm2slo_core.reporting.entry_evaluation import IndicatorData, entries
from mm2slo_core.reporting.entry_order import headline
from mm2slo_core.reporting.incidents import by_day, costliest, incidents
from mm2slo_core.reporting.minute_counts import (
    MINUTE_MS,
    Indicator,
    MinuteCounts,
    SpanCounts,
    counted,
)
from mm2slo_core.reporting.report_periods import days
from mm2slo_core.reporting.report_query import ReportQuery
from mm2slo_core.reporting.slo_report import Detail, History, Report
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.json_document import (
    cost_document,
    detail_document,
    entry_document,
    report_document,
)
from mm2slo_report.rendering.page_views import FlowView, GroupView, LagView
from mm2slo_report.rendering.value_format import utc
from mm2slo_report.web import response_docs
from mm2slo_report.web.audit_documents import evidence_document, run_document, unit_document
from mm2slo_report.web.exclusion_routes import changed_document
from mm2slo_report.web.flow_routes import flow_document, group_document, view_document
from mm2slo_report.web.objective_routes import alerts_document, history_document
from mm2slo_report.web.problem_details import not_found
from mm2slo_report.web.report_only_maintenance import MaintenanceEffects
from mm2slo_store.audit_rows import (
    Run,
    RunHeader,
    RunState,
    StoredEvidence,
    StoredFlow,
    StoredUnit,
    UnitKey,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_AS_OF: Final = 1_784_025_000_000
"""2026-07-14T10:30:00Z."""
_HOUR: Final = 60 * MINUTE_MS
_DAY: Final = 24 * _HOUR
_FLOW: Final = Flow("us", "eu")
_OBJECTIVE: Final = Objective(
    flow=_FLOW, key=SliKey(Sli.AVAILABILITY), target=0.999, window=28 * 86_400.0,
    max_severity=Severity.PAGE, owner="team-streams", channel="",
)  # fmt: skip
_OUTAGE: Final = Span(_AS_OF - 3 * _DAY, _AS_OF - 3 * _DAY + 6 * MINUTE_MS)
_PER_MINUTE: Final = 60
_EFFECTS: Final = MaintenanceEffects(
    done=("1 rule in mm2slo-maintenance.rules.yml",),
    problems=("no silence was created: it would be too late",),
)


@cache
def examples() -> Mapping[str, Any]:
    """All examples, by the names in `response_docs`."""
    found = _report()
    detail = _detail(found)
    listed = report_document(found)
    entry = entry_document(found.entries[0])
    flow = flow_document(_FLOW, found.entries)
    run = run_document(_run())
    exclusion = exclusion_document(_exclusion(), _AS_OF, utc)
    return {
        response_docs.LIST: {
            **listed, "headline": headline(found.entries), "total": 1, "next": None,
        },
        response_docs.REPORT: {
            **listed, "incidents": [cost_document(each) for each in costliest([detail])],
        },
        response_docs.ONE: detail_document(detail),
        response_docs.HISTORY: history_document(found.entries[0].id, _history()),
        response_docs.ALERTS: alerts_document(entry),
        response_docs.SPEC: _spec(),
        response_docs.FLOWS: {"as_of": utc(_AS_OF), "flows": [flow]},
        response_docs.FLOW: {
            "as_of": utc(_AS_OF), "source": found.source, "flow": flow,
            "now": view_document(
                FlowView(flow=_FLOW, state="running", lag_records=12, lag_seconds=0.4,
                         headroom_seconds=512_000.0)
            ),
            "entries": [entry], "warnings": [],
        },
        response_docs.READINESS: {
            "flow": _FLOW.label, "slug": _FLOW.slug, "as_of": utc(_AS_OF), "groups": 1,
            "ready": 0, "unreplicated": {"records": 1_183, "seconds": 20.0, "age_seconds": 0.5},
            "readiness": [group_document(_group())],
        },
        response_docs.AUDITS: {"as_of": utc(_AS_OF), "total": 1, "runs": [run], "next": None},
        response_docs.AUDIT: {**run, "topics": [unit_document(_unit(), lambda _: True)]},
        response_docs.EVIDENCE: {
            "run": _run().header.id, "evidence": [evidence_document(_evidence())], "next": None,
        },
        response_docs.EXCLUSIONS: {"exclusions": [exclusion]},
        response_docs.EXCLUSION: changed_document(_exclusion(), _AS_OF, _EFFECTS),
        response_docs.HEALTH: {"status": "ok", "problems": [], "warnings": []},
        response_docs.PROBLEM_EXAMPLE: not_found(
            "objective", "us-to-eu-availabilty", ("us-to-eu-availability",)
        ).document(),
    }  # fmt: skip


def _count(span: Span) -> SpanCounts:
    minutes = (span.end - span.start) // MINUTE_MS
    out = max(0, min(span.end, _OUTAGE.end) - max(span.start, _OUTAGE.start)) // MINUTE_MS
    total = float(minutes * _PER_MINUTE)
    return SpanCounts(good=total - out * _PER_MINUTE, total=total, minutes=minutes)


def _query() -> ReportQuery:
    return ReportQuery(objectives=(_OBJECTIVE,), as_of=_AS_OF, zone=UTC)


def _report() -> Report:
    query = _query()
    data = IndicatorData(
        counts={span: _count(span) for span in query.spans()}, known_since=_AS_OF - 90 * _DAY
    )
    return Report(
        as_of=_AS_OF,
        source="recorder",
        zone="UTC",
        window=None,
        entries=entries(query, {Indicator(_FLOW, _OBJECTIVE.key): data}),
    )


def _minutes(span: Span) -> tuple[MinuteCounts, ...]:
    found = []
    for at in range(span.start, span.end, MINUTE_MS):
        each = _count(Span(at, at + MINUTE_MS))
        found.append(MinuteCounts(at, each.good, each.total, each.unknown))
    return tuple(found)


def _detail(found: Report) -> Detail:
    entry = found.entries[0]
    parts = [each for each in days(entry.window, UTC) if each.overlaps(_OUTAGE)]
    minutes = _minutes(Span(parts[0].start, parts[-1].end))
    allowed = entry.budget.total_events
    return Detail(
        entry=entry,
        days=by_day(parts, {day: counted(minutes, day) for day in parts}, allowed),
        incidents=incidents(minutes, entry.budget, entry.objective.key.sli),
    )


def _history() -> History:
    span = Span(_AS_OF - 2 * _HOUR, _AS_OF)
    parts = (Span(span.start, span.start + _HOUR), Span(span.start + _HOUR, span.end))
    return History(
        objective=_OBJECTIVE, as_of=_AS_OF, start=span.start, end=span.end, length=_HOUR,
        steps=series(_minutes(span), parts, _OBJECTIVE.target, 2 * _HOUR / 1000),
    )  # fmt: skip


def _spec() -> str:
    from mm2slo_core.config.slo_section import render_slo_section

    return render_slo_section((_OBJECTIVE,))


def _group() -> GroupView:
    return GroupView(
        flow=_FLOW, group="orders", ready=False, reasons=("checkpoint_stale",),
        checkpoint_lag=4_200, redelivery_lower=4_200, redelivery_upper=4_311, commits_age=12.5,
        unreplicated_records=1_183, unreplicated_seconds=20.0,
        source_lag=LagView(310, 1.2), target_lag=LagView(4_311, 86.0),
    )  # fmt: skip


def _run() -> Run:
    start = datetime.fromtimestamp(_AS_OF / 1000, UTC)
    return Run(
        header=RunHeader(
            id=f"{start:%Y%m%dT%H%M%SZ}-5b1c2d", flows=(_FLOW,),
            window=Window(_AS_OF - _DAY, _AS_OF - _HOUR), started_at=_AS_OF, sample_rate=0.01,
            salt=7, config_hash="9f2c", versions={"mm2slo": "0.1.0", "spark": "4.0.5"},
        ),
        state=RunState.FINISHED, finished_at=_AS_OF + 90_000, exit_code=1,
        verdict_line="1 record is lost", complete_up_to=_AS_OF - 2 * _HOUR,
    )  # fmt: skip


def _unit() -> StoredUnit:
    run = _run()
    return StoredUnit(
        run_id=run.header.id, unit=0, key=UnitKey.named("us.orders", (_FLOW,)),
        window=run.header.window, flows=(StoredFlow(_FLOW, "orders"),), not_audited=None,
        counts={Verdict.MATCHED: 864_000, Verdict.LOST: 1}, source_bytes=91_000_000,
        end_to_end=LatencyCells({(96, 112): 864_000}), transfer=LatencyCells(), without_bracket=0,
        affinity=AffinityOutcome(keys=1_200), bounds=(),
        comparison=next(iter(Comparison)), target_time=next(iter(TimestampType)),
        keyed=False, oldest_open=None, order_judged=True,
    )  # fmt: skip


def _evidence() -> StoredEvidence:
    return StoredEvidence(
        run_id=_run().header.id, unit=0, target_topic="us.orders", flow=_FLOW,
        evidence=Evidence(
            verdict=Verdict.LOST, side=Side.SOURCE, flow=0, partition=3, offset=1_204_332,
            timestamp=_AS_OF - 3 * _HOUR, fingerprint=0x1F2E3D4C5B6A7988, key_hash=0x0102030405,
        ),
    )  # fmt: skip


def _exclusion() -> Exclusion:
    return Exclusion(
        id="20260714-3fa9c1", flows=("us->eu",), start=_AS_OF + _HOUR, end=_AS_OF + 3 * _HOUR,
        reason="upgrade of the target cluster", who="ops", added_at=_AS_OF - _DAY,
    )  # fmt: skip
