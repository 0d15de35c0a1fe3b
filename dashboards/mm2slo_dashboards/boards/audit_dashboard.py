"""Audit dashboard: whether records arrived as sent, up to when, and which faults were found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.catalogue.audit_result_metrics import (
    AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
    AUDIT_FAULTS_RECORDS,
    AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
    AUDIT_RECORDS,
    AUDIT_SAMPLED_RATIO,
    AUDIT_UNAUDITED_TOPICS,
    AUDIT_WINDOW_END_TIMESTAMP_SECONDS,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import Vector
from mm2slo_dashboards.boards import audit_bounds, audit_results
from mm2slo_dashboards.boards.audit_bounds import LATENCY_P99, LOST, upper_bound
from mm2slo_dashboards.boards.shared_definitions import FLOW_ANNOTATIONS, NO_AUDIT_DATA
from mm2slo_dashboards.dashboard_model import Column, Dashboard, Kind, Panel, Query, Row, Unit
from mm2slo_dashboards.panel_queries import FLOWS_VARIABLE, flow_series, max_by, min_by, sum_by
from mm2slo_dashboards.state_mappings import BAD_FROM_ONE, WARN_FROM_ONE

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric
    from mm2slo_dashboards.objective_limits import Limits


def build(limits: Limits) -> Dashboard:
    """Audit results by flow."""
    return Dashboard(
        uid=DashboardUid.AUDIT,
        title="MirrorMaker 2 / Audit",
        description="Did records arrive as they were sent? Results of the latest audit of each "
        "flow, published by the report service.",
        variables=(FLOWS_VARIABLE,),
        rows=(
            Row("Did everything arrive as it was sent?", _verdict(limits)),
            Row("Which flows, up to when?", (_flows(), *audit_results.run_panels(limits))),
            Row("How precise are the results?", audit_bounds.precision_panels()),
            Row("How long did records take?", audit_bounds.latency_panels(limits)),
        ),
        annotations=FLOW_ANNOTATIONS,
        time_from="now-7d",
        refresh="1m",
    )


def _verdict(limits: Limits) -> tuple[Panel, ...]:
    faults = sum_by(max_by(flow_series(AUDIT_FAULTS_RECORDS), "flow"))
    return (
        Panel(
            title="Faulty records",
            description="How many records are faulty? Records that the latest audits found "
            "lost, overdue, expired, moved, altered or unmasked. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_AUDIT_DATA,
            queries=(Query(vector=faults, instant=True),),
            thresholds=BAD_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2RecordsLost",
            width=4,
            height=8,
        ),
        audit_results.verdicts(),
        audit_results.faults_over_time(limits),
    )


def _flows() -> Panel:
    return Panel(
        title="Latest audit by flow",
        description="What did the latest audit of each flow find? Most faults first. Complete "
        "up to: every record with an earlier timestamp is replicated or reported as a fault.",
        kind=Kind.TABLE,
        unit=Unit.COUNT,
        no_data=NO_AUDIT_DATA,
        keys={"flow": "Flow"},
        columns=(
            Column(
                title="Faulty",
                vector=max_by(flow_series(AUDIT_FAULTS_RECORDS), "flow"),
                unit=Unit.COUNT,
                thresholds=BAD_FROM_ONE,
            ),
            Column(
                title="Audited",
                vector=sum_by(max_by(flow_series(AUDIT_RECORDS), "flow", "verdict"), "flow"),
                unit=Unit.COUNT,
            ),
            Column(title="Lost, upper bound", vector=upper_bound(LOST, "flow"), unit=Unit.SHARE),
            Column(
                title="p99, upper bound", vector=upper_bound(LATENCY_P99, "flow"), unit=Unit.SECONDS
            ),
            Column(
                title="Sampled",
                vector=min_by(flow_series(AUDIT_SAMPLED_RATIO), "flow"),
                unit=Unit.SHARE,
            ),
            Column(
                title="Complete up to",
                vector=_timestamp(AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS),
                unit=Unit.TIMESTAMP,
            ),
            Column(
                title="Window end",
                vector=_timestamp(AUDIT_WINDOW_END_TIMESTAMP_SECONDS),
                unit=Unit.TIMESTAMP,
            ),
            Column(
                title="Ended",
                vector=_timestamp(AUDIT_LAST_RUN_TIMESTAMP_SECONDS),
                unit=Unit.TIMESTAMP,
            ),
            Column(
                title="Unauditable topics",
                vector=max_by(flow_series(AUDIT_UNAUDITED_TOPICS), "flow"),
                unit=Unit.COUNT,
                thresholds=WARN_FROM_ONE,
            ),
        ),
        sort=("-Faulty", "Complete up to"),
        next_dashboard=DashboardUid.FLOW,
        alert="MM2RecordsLost",
        width=24,
    )


def _timestamp(metric: Metric) -> Vector:
    latest = max_by(flow_series(metric), "flow")
    return Vector(f"1000 * {latest}", latest.labels)
