"""Dashboard of the monitoring itself: exporters, rules, notifications."""

from __future__ import annotations

from mm2slo_core.catalogue.report_metrics import REPORT_SCRAPE_FAILURES_TOTAL, REPORT_SCRAPES_TOTAL
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import equal, over
from mm2slo_dashboards.boards import pipeline_alerts, pipeline_collection, pipeline_cost
from mm2slo_dashboards.dashboard_model import Dashboard, Kind, Panel, Query, Row, Unit
from mm2slo_dashboards.panel_queries import RATE_VARIABLE, sum_by


def build(exporter_job: str) -> Dashboard:
    """Exporters scraped under *exporter_job*, rules and notifications."""
    job = equal("job", exporter_job)
    return Dashboard(
        uid=DashboardUid.PIPELINE,
        title="MirrorMaker 2 / Exporter and pipeline health",
        description="Would we know if something went wrong? Exporters, rules and notifications.",
        variables=(),
        rows=(
            Row("Are the flows monitored?", pipeline_collection.status_panels(job)),
            Row("Is collection working?", pipeline_collection.collection_panels(job)),
            Row("What does the exporter cost?", pipeline_cost.panels(job)),
            Row("Are rules evaluated and notifications delivered?", pipeline_alerts.panels()),
            Row("Does the report service record?", _report()),
        ),
    )


def _report() -> tuple[Panel, ...]:
    return (
        Panel(
            title="Recorder scrapes",
            description="Does the recorder reach the exporters? Scrapes per second by the "
            "embedded recorder, and failed ones. Empty where history comes from Prometheus.",
            kind=Kind.SERIES,
            unit=Unit.REQUESTS,
            no_data="History comes from Prometheus, or `mm2slo report serve` is not scraped.",
            queries=(
                Query(
                    vector=sum_by(over("rate", REPORT_SCRAPES_TOTAL, RATE_VARIABLE), "exporter"),
                    legend="{{exporter}}",
                ),
                Query(
                    vector=sum_by(
                        over("rate", REPORT_SCRAPE_FAILURES_TOTAL, RATE_VARIABLE), "exporter"
                    ),
                    legend="{{exporter}} failed",
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.AUDIT,
            fills_on="a report service with a recorder",
            width=24,
            height=6,
        ),
    )
