"""Panels with audit findings and audit runs."""

from __future__ import annotations

from typing import Final

from mm2slo_core.audit.record_verdict import FAULTS, Verdict
from mm2slo_core.catalogue.audit_result_metrics import (
    AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
    AUDIT_FAULTS_RECORDS,
    AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
    AUDIT_RECORDS,
    AUDIT_RUNS,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import matching, select
from mm2slo_dashboards.boards.shared_definitions import NO_AUDIT_DATA
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import (
    filter_by,
    flow_series,
    max_by,
    seconds_since,
    sum_by,
    topk,
)
from mm2slo_dashboards.state_mappings import BAD_FROM_ONE, WARN_FROM_ONE

_VERDICTS: Final = {
    Verdict.MATCHED.value: Colour.GOOD,
    Verdict.PENDING.value: Colour.RESTING,
    Verdict.UNAUDITABLE.value: Colour.UNKNOWN,
    **{verdict.value: Colour.BAD for verdict in Verdict if verdict in FAULTS},
}


def finding_panels() -> tuple[Panel, ...]:
    """Verdicts, faults over time, and the age of the complete-up-to time."""
    others = matching(
        "verdict", "|".join(each.value for each in Verdict if each is not Verdict.MATCHED)
    )
    verdicts = sum_by(max_by(flow_series(AUDIT_RECORDS, others), "flow", "verdict"), "verdict")
    watermark = max_by(flow_series(AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS), "flow")
    return (
        Panel(
            title="Verdicts other than matched",
            description="Which verdicts did the latest audits give? Records by verdict. Pending "
            "records may still be replicated; the audit's report has evidence of each anomaly.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data=NO_AUDIT_DATA,
            queries=(Query(vector=verdicts, legend="{{verdict}}", instant=True),),
            colours=_VERDICTS,
            thresholds=WARN_FROM_ONE,
            decimals=0,
            minimum=0.0,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2RecordsLost",
            width=8,
        ),
        Panel(
            title="Faulty records over time",
            description="When were faulty records found? Faulty records in the latest audit of "
            "each flow.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=NO_AUDIT_DATA,
            queries=(
                Query(
                    vector=topk(10, max_by(flow_series(AUDIT_FAULTS_RECORDS), "flow")),
                    legend="{{flow}}",
                ),
            ),
            thresholds=BAD_FROM_ONE,
            minimum=0.0,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2RecordsLost",
            width=8,
        ),
        Panel(
            title="Age of complete-up-to",
            description="Up to when is each flow proven complete? Time since then, the ten "
            "longest; it falls with each audit.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=NO_AUDIT_DATA,
            queries=(
                Query(
                    vector=topk(10, seconds_since(watermark)),
                    legend="{{flow}}",
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLOW,
            width=8,
        ),
    )


def run_panels() -> tuple[Panel, ...]:
    """Audit runs by state, and time since the last one."""
    ended = max_by(flow_series(AUDIT_LAST_RUN_TIMESTAMP_SECONDS), "flow")
    return (
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
        ),
        Panel(
            title="Time since the last audit",
            description="How long ago did the last audit end? Time since the last finished "
            "audit of each flow, the ten longest.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=NO_AUDIT_DATA,
            queries=(
                Query(
                    vector=topk(10, filter_by(seconds_since(ended), ">= 0")),
                    legend="{{flow}}",
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.PIPELINE,
        ),
    )
