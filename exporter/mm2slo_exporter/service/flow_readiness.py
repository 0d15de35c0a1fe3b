"""Readiness of a flow, and its row on the HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_exporter.collection_health import Stage
from mm2slo_exporter.web.site import FlowOverview, FlowReadiness

if TYPE_CHECKING:
    from mm2slo_exporter.collection_health import Health
    from mm2slo_exporter.state.flow_report import FlowReport

_VITAL = (Stage.TOPICS, Stage.END_OFFSETS)


def flow_readiness(report: FlowReport, health: Health) -> FlowReadiness:
    """Ready once everything was read, or when a cluster is unreachable."""
    flow = report.flow
    if report.ready:
        return FlowReadiness(flow, ready=True)
    unreachable = tuple(
        f"cluster {alias}: {reason}"
        for alias in (flow.source, flow.target)
        for stage, reason in health.failing_stages(alias).items()
        if stage in _VITAL
    )
    return FlowReadiness(
        flow, ready=bool(unreachable), waiting_for=(*report.waiting_for, *unreachable)
    )


def flow_overview(report: FlowReport) -> FlowOverview:
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
        unjudged=(
            ("excluded", report.unjudged_groups.excluded),
            ("without commits", report.unjudged_groups.without_commits),
        ),
        group_types_known=report.unjudged_groups.all_types,
    )
