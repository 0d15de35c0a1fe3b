"""Panels with what the exporter costs: cycles, series, memory, CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.catalogue.exporter_metrics import (
    EXPORTER_CYCLE_DURATION_SECONDS,
    EXPORTER_RENDER_DURATION_SECONDS,
    EXPORTER_SERIES,
)
from mm2slo_core.catalogue.process_metrics import (
    PROCESS_CPU_SECONDS_TOTAL,
    PROCESS_RESIDENT_MEMORY_BYTES,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import Matcher, over, select
from mm2slo_dashboards.boards.pipeline_collection import NO_EXPORTER_DATA, REPLICA
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import RATE_VARIABLE, max_by

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric


def panels(job: Matcher) -> tuple[Panel, ...]:
    """Cost of the exporters that match *job*."""
    return (
        _gauges(
            "Cycle duration",
            "How long does a cycle take? Evaluation of all flows, and its rendering. Scrapes do "
            "not wait for it.",
            Unit.SECONDS,
            (EXPORTER_CYCLE_DURATION_SECONDS, "cycle"),
            (EXPORTER_RENDER_DURATION_SECONDS, "rendering"),
            job=job,
        ),
        _gauges(
            "Exported series",
            "How many series are exported? Series in the latest snapshot of each exporter.",
            Unit.COUNT,
            (EXPORTER_SERIES, "series"),
            job=job,
        ),
        _gauges(
            "Resident memory",
            "How much memory does the exporter use? Resident memory of each replica.",
            Unit.BYTES,
            (PROCESS_RESIDENT_MEMORY_BYTES, "resident"),
            job=job,
        ),
        Panel(
            title="CPU usage",
            description="How much CPU does the exporter use? CPU seconds per second of each "
            "replica; 1 is one core.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=max_by(
                        over("rate", PROCESS_CPU_SECONDS_TOTAL, RATE_VARIABLE, job), "instance"
                    ),
                    legend=REPLICA,
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2ExporterDown",
            width=6,
        ),
    )


def _gauges(
    title: str,
    description: str,
    unit: Unit,
    *metrics: tuple[Metric, str],
    job: Matcher,
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_EXPORTER_DATA,
        queries=tuple(
            Query(vector=max_by(select(metric, job), "instance"), legend=f"{REPLICA} {name}")
            for metric, name in metrics
        ),
        minimum=0.0,
        next_dashboard=DashboardUid.FLEET,
        alert="MM2ExporterDown",
        width=6,
    )
