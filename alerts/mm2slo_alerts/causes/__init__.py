"""Alerts about causes: each names what is broken, beside the alerts on burning budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.causes import clusters, failover, flow, platform, topics
from mm2slo_alerts.model import Group

if TYPE_CHECKING:
    from mm2slo_alerts.model import Links, Scale
    from mm2slo_alerts.thresholds import Thresholds

__all__ = ["groups"]


def groups(thresholds: Thresholds, links: Links, scale: Scale) -> tuple[Group, ...]:
    """The rule groups, one per subject, every time shortened by *scale*."""
    limits = thresholds.scaled(scale)
    subjects = {
        "flow": flow.causes(limits),
        "topics": topics.causes(limits),
        "failover": failover.causes(limits),
        "clusters": clusters.causes(limits),
        "platform": platform.causes(limits),
    }
    return tuple(
        Group(
            name=f"mm2slo-causes-{subject}",
            interval=limits.interval,
            rules=tuple(cause.rule(links, scale) for cause in causes),
        )
        for subject, causes in subjects.items()
    )
