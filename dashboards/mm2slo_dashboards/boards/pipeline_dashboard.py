"""Dashboard of the monitoring itself: exporters, rules, notifications."""

from __future__ import annotations

from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import equal
from mm2slo_dashboards.boards import pipeline_alerts, pipeline_collection, pipeline_cost
from mm2slo_dashboards.dashboard_model import Dashboard, Row


def build(exporter_job: str) -> Dashboard:
    """Exporters scraped under *exporter_job*, rules and notifications."""
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
