"""Exporter and pipeline health: whether we would know if something went wrong."""

from __future__ import annotations

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.reported import REPORT_SCRAPE_FAILURES_TOTAL, REPORT_SCRAPES_TOTAL
from mm2slo_core.promql import equal, over
from mm2slo_dashboards.boards import pipeline_alerting, pipeline_cost, pipeline_reading
from mm2slo_dashboards.model import Board, Kind, Panel, Query, Row, Unit
from mm2slo_dashboards.selecting import RATE, total


def board(exporter_job: str) -> Board:
    """Exporters, rules and messages."""
    job = equal("job", exporter_job)
    return Board(
        identity=Identity.PIPELINE,
        title="MirrorMaker 2 / Exporter and pipeline health",
        description="Would we know if something went wrong? Exporters, rules and messages.",
        variables=(),
        rows=(
            Row("Do we see the flows?", pipeline_reading.seeing(job)),
            Row("Are the clusters read?", pipeline_reading.reading(job)),
            Row("What does the exporter cost?", pipeline_cost.panels(job)),
            Row("Are rules evaluated, and messages delivered?", pipeline_alerting.panels()),
            Row("Does the report service record?", _report()),
        ),
    )


def _report() -> tuple[Panel, ...]:
    return (
        Panel(
            title="Does its recorder reach the exporters?",
            description="Scrapes of the embedded recorder a second, and those that failed. "
            "Nothing to see where history comes from Prometheus.",
            kind=Kind.SERIES,
            unit=Unit.REQUESTS,
            no_data="History comes from Prometheus, or `mm2slo report serve` is not scraped.",
            queries=(
                Query(
                    vector=total(over("rate", REPORT_SCRAPES_TOTAL, RATE), "exporter"),
                    legend="{{exporter}}",
                ),
                Query(
                    vector=total(over("rate", REPORT_SCRAPE_FAILURES_TOTAL, RATE), "exporter"),
                    legend="{{exporter}} failed",
                ),
            ),
            least=0.0,
            leads=Identity.AUDIT,
            fills="a report service with a recorder",
            width=24,
            height=6,
        ),
    )
