"""The indicators that the exporter publishes for a flow, with their expected event rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.canary_rules import AVAILABILITY, CanaryRules
from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.objectives.default_objectives import default_rules
from mm2slo_core.objectives.traffic_limits import HOUR, PublishedIndicator
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from mm2slo_core.objectives.objective import ObjectiveRule


def published(flow: FlowConfig, carrier: CanaryCarrier) -> tuple[PublishedIndicator, ...]:
    """The indicators of *flow* with the effective canary *carrier*.

    Rates of slices are for one partition or group, because the configuration does not contain
    their number.
    """
    slices = HOUR / flow.slice
    found: list[PublishedIndicator] = []
    if carrier is not CanaryCarrier.OFF:
        deadline = flow.canary.deadline
        rules = CanaryRules(
            deadline=deadline,
            # Thresholds above the deadline are reported by section_checks.
            latency_tiers=tuple(tier for tier in flow.canary.latency_tiers if tier <= deadline),
            own_topic=carrier is CanaryCarrier.TOPIC,
        )
        found += [PublishedIndicator(key, HOUR / flow.canary.interval) for key in rules.indicators]
    elif flow.by_mirrormaker:
        found.append(PublishedIndicator(AVAILABILITY, slices))
    if flow.by_mirrormaker:
        classes = (SliKey(Sli.DATA_FRESHNESS, each.name) for each in flow.freshness)
        found += [PublishedIndicator(key, slices) for key in classes]
        found.append(PublishedIndicator(SliKey(Sli.CHECKPOINT_FRESHNESS), slices))
    return tuple(found)


def default_objective_rules() -> tuple[ObjectiveRule, ...]:
    """The default objectives of a flow with the default configuration and a canary topic."""
    flow = Flow("source", "target")
    return default_rules({flow: published(FlowConfig(flow=flow), CanaryCarrier.TOPIC)})
