"""Alerts about causes: each names what is broken."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from mm2slo_alerts.causes import (
    cluster_causes,
    failover_causes,
    flow_causes,
    platform_causes,
    topic_causes,
)
from mm2slo_alerts.rule_model import Group

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.rule_model import Links, Scale
    from mm2slo_alerts.thresholds import Thresholds
    from mm2slo_core.topology import Flow

__all__ = ["ANY_FLOW", "groups"]

ANY_FLOW: Final[Mapping[Flow, float]] = MappingProxyType({})
"""The flows of rules without a configuration."""


def groups(
    thresholds: Thresholds, links: Links, scale: Scale, expected: Mapping[Flow, float] = ANY_FLOW
) -> tuple[Group, ...]:
    """Return one rule group per subject, its times shortened by *scale*.

    *expected* are the flows of a configuration with their freshness thresholds (seconds); without
    them, rules remember the flows they saw.
    """
    limits = thresholds.scaled(scale)
    subjects = {
        "flow": flow_causes.causes(limits, expected),
        "topics": topic_causes.causes(limits),
        "failover": failover_causes.causes(limits),
        "clusters": cluster_causes.causes(limits),
        "platform": platform_causes.causes(limits),
    }
    recorded = {
        "flow": flow_causes.recorded(
            limits, {flow: scale(threshold) for flow, threshold in expected.items()}
        ),
        "clusters": cluster_causes.recorded(limits),
    }
    return tuple(
        Group(
            name=f"mm2slo-causes-{subject}",
            interval=limits.interval,
            rules=(*recorded.get(subject, ()), *(cause.rule(links) for cause in causes)),
        )
        for subject, causes in subjects.items()
    )
