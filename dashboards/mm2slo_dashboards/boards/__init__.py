"""The dashboards, from the whole fleet to the health of monitoring itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_dashboards.boards import (
    audit_dashboard,
    failover_dashboard,
    fleet_dashboard,
    flow_dashboard,
    pipeline_dashboard,
    slo_dashboard,
)

if TYPE_CHECKING:
    from mm2slo_dashboards.dashboard_model import Dashboard
    from mm2slo_dashboards.objective_limits import Limits


def build_all(limits: Limits, exporter_job: str) -> tuple[Dashboard, ...]:
    """Every dashboard; exporters are scraped under the job *exporter_job*."""
    return (
        fleet_dashboard.build(limits),
        flow_dashboard.build(limits),
        failover_dashboard.build(limits),
        audit_dashboard.build(limits),
        slo_dashboard.build(limits),
        pipeline_dashboard.build(exporter_job),
    )
