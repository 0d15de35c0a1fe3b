"""Flow dashboard: impact, lag, possible data loss and causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_dashboards.boards import flow_causes, flow_impact, flow_lag
from mm2slo_dashboards.boards.shared_definitions import FLOW_ANNOTATIONS
from mm2slo_dashboards.dashboard_model import Dashboard, Row
from mm2slo_dashboards.panel_queries import FLOW_VARIABLE, TOPICS_VARIABLE

if TYPE_CHECKING:
    from mm2slo_dashboards.objective_limits import Limits


def build(limits: Limits) -> Dashboard:
    """One flow, from symptom to cause."""
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
