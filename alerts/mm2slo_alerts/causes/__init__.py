"""Alerts about causes: each names what is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.causes import (
    cluster_causes,
    failover_causes,
    flow_causes,
    platform_causes,
    topic_causes,
)
from mm2slo_alerts.rule_model import Group

if TYPE_CHECKING:
    from collections.abc import Collection

    from mm2slo_alerts.rule_model import Links, Scale
    from mm2slo_alerts.thresholds import Thresholds
    from mm2slo_core.topology import Flow

__all__ = ["groups"]


def groups(
    thresholds: Thresholds, links: Links, scale: Scale, expected: Collection[Flow] = ()
) -> tuple[Group, ...]:
    """Return one rule group per subject, its times shortened by *scale*.

    *expected* are the flows of a configuration; without them, rules remember the flows they saw.
    """
    limits = thresholds.scaled(scale)
    subjects = {
        "flow": flow_causes.causes(limits, expected),
        "topics": topic_causes.causes(limits),
        "failover": failover_causes.causes(limits),
        "clusters": cluster_causes.causes(limits),
        "platform": platform_causes.causes(limits),
    }
    recorded = {"flow": flow_causes.recorded(limits, expected)}
    return tuple(
        Group(
            name=f"mm2slo-causes-{subject}",
            interval=limits.interval,
            rules=(*recorded.get(subject, ()), *(cause.rule(links) for cause in causes)),
        )
        for subject, causes in subjects.items()
    )
