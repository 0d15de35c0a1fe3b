"""The boards, from the whole fleet down to what watches it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_dashboards.boards import audit, failover, fleet, flow, pipeline, slo

if TYPE_CHECKING:
    from mm2slo_dashboards.limits import Limits
    from mm2slo_dashboards.model import Board


def boards(limits: Limits, exporter_job: str) -> tuple[Board, ...]:
    """Every board; exporters are scraped as *exporter_job*."""
    return (
        fleet.board(limits),
        flow.board(limits),
        failover.board(limits),
        audit.board(limits),
        slo.board(limits),
        pipeline.board(exporter_job),
    )
