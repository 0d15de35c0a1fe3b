"""Which indicators the exporter publishes of a flow, and how many events to expect of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.canary_rules import AVAILABILITY, CanaryRules
from mm2slo_core.config.canary import CanaryCarrier
from mm2slo_core.config.flow import FlowConfig
from mm2slo_core.objectives.defaults import default_rules
from mm2slo_core.objectives.traffic import HOUR, Published
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from mm2slo_core.objectives.objective import ObjectiveRule


def published(flow: FlowConfig, carrier: CanaryCarrier) -> tuple[Published, ...]:
    """The indicators of *flow*, whose canary goes by *carrier*.

    Slices are counted for one partition, or one group that moves, at least: how many there are,
    no configuration tells.
    """
    slices = HOUR / flow.slice
    found: list[Published] = []
    if carrier is not CanaryCarrier.OFF:
        deadline = flow.canary.deadline
        rules = CanaryRules(
            deadline=deadline,
            # A threshold above the deadline is refused elsewhere, with everything else.
            latency_tiers=tuple(tier for tier in flow.canary.latency_tiers if tier <= deadline),
            own_topic=carrier is CanaryCarrier.TOPIC,
        )
        found += [Published(key, HOUR / flow.canary.interval) for key in rules.indicators]
    elif flow.by_mirrormaker:
        found.append(Published(AVAILABILITY, slices))
    if flow.by_mirrormaker:
        classes = (SliKey(Sli.DATA_FRESHNESS, each.name) for each in flow.freshness)
        found += [Published(key, slices) for key in classes]
        found.append(Published(SliKey(Sli.CHECKPOINT_FRESHNESS), slices))
    return tuple(found)


def default_objective_rules() -> tuple[ObjectiveRule, ...]:
    """The objectives of any flow where nothing is configured: every indicator, default tiers."""
    flow = Flow("source", "target")
    return default_rules({flow: published(FlowConfig(flow=flow), CanaryCarrier.TOPIC)})
