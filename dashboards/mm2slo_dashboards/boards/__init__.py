"""The dashboards, from the whole fleet to the health of monitoring itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import equal
from mm2slo_dashboards.boards import (
    audit_dashboard,
    failover_dashboard,
    fleet_dashboard,
    flow_causes,
    flow_impact,
    flow_lag,
    pipeline_alerts,
    pipeline_collection,
    pipeline_cost,
    slo_dashboard,
)
from mm2slo_dashboards.boards.shared_definitions import FLOW_ANNOTATIONS
from mm2slo_dashboards.dashboard_model import Dashboard, Row
from mm2slo_dashboards.panel_queries import FLOW_VARIABLE, TOPICS_VARIABLE

if TYPE_CHECKING:
    from mm2slo_dashboards.objective_limits import Limits


def build_all(limits: Limits, exporter_job: str) -> tuple[Dashboard, ...]:
    """Every dashboard; exporters are scraped under the job *exporter_job*."""
    return (
        fleet_dashboard.build(limits),
        _flow_dashboard(limits),
        failover_dashboard.build(limits),
        audit_dashboard.build(limits),
        slo_dashboard.build(limits),
        _pipeline_dashboard(exporter_job),
    )


def _flow_dashboard(limits: Limits) -> Dashboard:
    """One flow, from symptom to cause: impact, lag, possible data loss and causes."""
    return Dashboard(
        uid=DashboardUid.FLOW,
        title="MirrorMaker 2 / Flow",
        description="One flow, from impact to cause.",
        variables=(FLOW_VARIABLE, TOPICS_VARIABLE),
        rows=(
            Row("Is the flow healthy?", flow_impact.panels(limits)),
            Row("How far behind is it, and could data be lost?", flow_lag.panels(limits)),
            Row("What is the cause?", flow_causes.panels()),
        ),
        annotations=FLOW_ANNOTATIONS,
    )


def _pipeline_dashboard(exporter_job: str) -> Dashboard:
    """The monitoring itself: exporters scraped under *exporter_job*, rules and notifications."""
    job = equal("job", exporter_job)
    return Dashboard(
        uid=DashboardUid.PIPELINE,
        title="MirrorMaker 2 / Exporter and pipeline health",
        description="Would we know if something went wrong? Exporters, rules and notifications.",
        variables=(),
        rows=(
            Row("Are the flows monitored?", pipeline_collection.panels(job)),
            Row("What does the exporter cost?", pipeline_cost.panels(job)),
            Row("Are rules evaluated and notifications delivered?", pipeline_alerts.panels()),
        ),
    )
