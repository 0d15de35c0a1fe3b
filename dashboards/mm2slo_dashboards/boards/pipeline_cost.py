"""What the exporter costs: cycles, series, memory, processor time, the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.exporter import (
    EXPORTER_CYCLE_DURATION_SECONDS,
    EXPORTER_RENDER_DURATION_SECONDS,
    EXPORTER_SERIES,
    EXPORTER_TIMELINE_BYTES_TOTAL,
    EXPORTER_TIMELINE_WRITER,
)
from mm2slo_core.catalogue.process import (
    PROCESS_CPU_SECONDS_TOTAL,
    PROCESS_RESIDENT_MEMORY_BYTES,
)
from mm2slo_core.promql import Matcher, over, select
from mm2slo_dashboards.boards.pipeline_reading import NO_EXPORTER, REPLICA
from mm2slo_dashboards.model import Kind, Panel, Query, Unit
from mm2slo_dashboards.selecting import RATE, top, total, worst

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric


def panels(job: Matcher) -> tuple[Panel, ...]:
    """Of the exporters that *job* chooses."""
    return (
        _gauges(
            "How long does a cycle take?",
            "Evaluation of all flows, and the rendering within it. A scrape never waits for them.",
            Unit.SECONDS,
            (EXPORTER_CYCLE_DURATION_SECONDS, "cycle"),
            (EXPORTER_RENDER_DURATION_SECONDS, "rendering"),
            job=job,
        ),
        _gauges(
            "How many series are there?",
            "Series in the newest snapshot of each exporter.",
            Unit.COUNT,
            (EXPORTER_SERIES, "series"),
            job=job,
        ),
        _gauges(
            "How much memory does it take?",
            "Resident memory of each exporter.",
            Unit.BYTES,
            (PROCESS_RESIDENT_MEMORY_BYTES, "resident"),
            job=job,
        ),
        Panel(
            title="How much processor time does it take?",
            description="Seconds of processor time a second of each exporter: 1 is one core.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=worst(over("rate", PROCESS_CPU_SECONDS_TOTAL, RATE, job), "instance"),
                    legend=REPLICA,
                ),
            ),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2ExporterDown",
            width=8,
        ),
        Panel(
            title="Who writes the timeline?",
            description="Exporters that write each flow's watermark timeline. One is right; none "
            "while a writer is elected, or where nothing may be written.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=total(select(EXPORTER_TIMELINE_WRITER, job), "flow"), legend="{{flow}}"
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            width=8,
        ),
        Panel(
            title="What does the timeline cost?",
            description="Bytes a second written to the watermark timelines.",
            kind=Kind.SERIES,
            unit=Unit.BYTE_RATE,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=top(
                        10, total(over("rate", EXPORTER_TIMELINE_BYTES_TOTAL, RATE, job), "flow")
                    ),
                    legend="{{flow}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            width=8,
        ),
    )


def _gauges(
    title: str,
    description: str,
    unit: Unit,
    *figures: tuple[Metric, str],
    job: Matcher,
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_EXPORTER,
        queries=tuple(
            Query(vector=worst(select(metric, job), "instance"), legend=f"{REPLICA} {word}")
            for metric, word in figures
        ),
        least=0.0,
        leads=Identity.FLEET,
        alert="MM2ExporterDown",
        width=8,
    )
