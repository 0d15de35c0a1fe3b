"""Panels with audit findings and audit runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.record_verdict import FAULTS, Verdict
from mm2slo_core.catalogue.audit_result_metrics import (
    AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
    AUDIT_FAULTS_RECORDS,
    AUDIT_RECORDS,
    AUDIT_RUNS,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import matching, select
from mm2slo_dashboards.boards.shared_definitions import NO_AUDIT_DATA
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Thresholds, Unit
from mm2slo_dashboards.panel_queries import (
    flow_series,
    max_by,
    seconds_since,
    sum_by,
    topk,
)
from mm2slo_dashboards.state_mappings import BAD_FROM_ONE, WARN_FROM_ONE

if TYPE_CHECKING:
    from mm2slo_core.promql import Vector
    from mm2slo_dashboards.objective_limits import Limits

_VERDICTS: Final = {
    Verdict.MATCHED.value: Colour.GOOD,
    Verdict.PENDING.value: Colour.RESTING,
    Verdict.UNAUDITABLE.value: Colour.UNKNOWN,
    **{verdict.value: Colour.BAD for verdict in Verdict if verdict in FAULTS},
}


def verdicts() -> Panel:
    """Records by verdict, but for matched ones."""
    others = matching(
        "verdict", "|".join(each.value for each in Verdict if each is not Verdict.MATCHED)
    )
    found = sum_by(max_by(flow_series(AUDIT_RECORDS, others), "flow", "verdict"), "verdict")
    return Panel(
        title="Verdicts other than matched",
        description="Which verdicts did the latest audits give? Records by verdict. Pending "
        "records may still be replicated; the audit's report has evidence of each anomaly.",
        kind=Kind.BARS,
        unit=Unit.COUNT,
        no_data=NO_AUDIT_DATA,
        queries=(Query(vector=found, legend="{{verdict}}", instant=True),),
        colours=_VERDICTS,
        thresholds=WARN_FROM_ONE,
        decimals=0,
        minimum=0.0,
        next_dashboard=DashboardUid.FLOW,
        alert="MM2RecordsLost",
        width=10,
    )


def faults_over_time(limits: Limits) -> Panel:
    """Faulty records over time."""
    return _by_flow(
        "Faulty records over time",
        "When were faulty records found? Faulty records in the latest audit of each flow.",
        Unit.COUNT,
        max_by(flow_series(AUDIT_FAULTS_RECORDS), "flow"),
        limits,
        thresholds=BAD_FROM_ONE,
        alert="MM2RecordsLost",
    )


def run_panels(limits: Limits) -> tuple[Panel, ...]:
    """Age of the complete-up-to time, and audit runs by state."""
    complete = max_by(flow_series(AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS), "flow")
    return (
        _by_flow(
            "Age of complete-up-to",
            "Up to when is each flow proven complete? Time since then, the ten longest; it falls "
            "with each audit.",
            Unit.SECONDS,
            seconds_since(complete),
            limits,
        ),
        Panel(
            title="Audit runs by state",
            description="Do audits run and finish? Runs in the results store; the report of a "
            "failed run has its reason.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_AUDIT_DATA,
            queries=(
                Query(vector=max_by(select(AUDIT_RUNS), "state"), legend="{{state}}", instant=True),
            ),
            colours={
                "finished": Colour.NEUTRAL,
                "running": Colour.GOOD,
                "failed": Colour.BAD,
            },
            decimals=0,
            next_dashboard=DashboardUid.PIPELINE,
            width=14,
        ),
    )


def _by_flow(
    title: str,
    description: str,
    unit: Unit,
    vector: Vector,
    limits: Limits,
    *,
    thresholds: Thresholds | None = None,
    alert: str = "",
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_AUDIT_DATA,
        queries=(Query(vector=topk(10, vector), legend="{{flow}}"),),
        colours=limits.flow_colours,
        thresholds=thresholds,
        minimum=0.0,
        next_dashboard=DashboardUid.FLOW,
        alert=alert,
        width=10,
    )
