"""Whether a flow's figures can be served, and its line on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_exporter.health import Stage
from mm2slo_exporter.web.site import FlowOverview, FlowReadiness

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow
    from mm2slo_exporter.health import Health
    from mm2slo_exporter.state.model import FlowReport

_VITAL = (Stage.TOPICS, Stage.END_OFFSETS)


def flow_readiness(flow: Flow, report: FlowReport | None, health: Health) -> FlowReadiness:
    """Ready once everything was read, or its cluster is declared unreachable."""
    if report is None:
        return FlowReadiness(flow, ready=False, waiting_for=("the first round",))
    if report.ready:
        return FlowReadiness(flow, ready=True)
    away = tuple(
        f"cluster {alias}: {reason}"
        for alias in (flow.source, flow.target)
        for stage, reason in health.failing(alias).items()
        if stage in _VITAL
    )
    return FlowReadiness(flow, ready=bool(away), waiting_for=(*report.waiting_for, *away))


def flow_overview(report: FlowReport) -> FlowOverview:
    """One line of the page."""
    return FlowOverview(
        flow=report.flow,
        state=report.state.value,
        reason=str(report.state_reason),
        ready=report.ready,
        lag_records=report.lag_records,
        lag_seconds=report.lag_seconds,
        stalled_partitions=len(report.stalled),
        groups_ready=sum(group.readiness.ready for group in report.groups),
        groups=len(report.groups),
    )
