"""The default objectives."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.objective import DEFAULT_WINDOW, ObjectiveRule, Severity
from mm2slo_core.objectives.traffic_limits import strictest_target
from mm2slo_core.sli_counters import Sli

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.objectives.traffic_limits import PublishedIndicator
    from mm2slo_core.sli_counters import SliKey
    from mm2slo_core.topology import Flow

ANY_FLOW: Final = ("*",)


class DefaultObjective(NamedTuple):
    """Target and highest severity of alerts."""

    target: float
    max_severity: Severity


DEFAULT_OBJECTIVES: Final[Mapping[Sli, DefaultObjective]] = {
    Sli.AVAILABILITY: DefaultObjective(0.999, Severity.PAGE),
    Sli.DATA_FRESHNESS: DefaultObjective(0.995, Severity.PAGE),
    Sli.COMPLETENESS: DefaultObjective(0.9999, Severity.TICKET),
    Sli.UNIQUENESS: DefaultObjective(0.999, Severity.TICKET),
    Sli.ORDER: DefaultObjective(0.999, Severity.TICKET),
    Sli.AFFINITY: DefaultObjective(0.999, Severity.TICKET),
    Sli.CHECKPOINT_FRESHNESS: DefaultObjective(0.99, Severity.TICKET),
}
"""All indicators except latency, whose tiers differ."""
FASTEST_TIER: Final = DefaultObjective(0.99, Severity.TICKET)
"""For the smallest latency threshold, with room for restarts and rebalances."""
MIDDLE_TIER: Final = DefaultObjective(0.995, Severity.TICKET)
SLOWEST_TIER: Final = DefaultObjective(0.999, Severity.PAGE)
"""For the largest of several thresholds, close to the availability objective."""


class RelaxedDefault(NamedTuple):
    """A default that the event rate lowers; `target` is None without an objective."""

    flow: Flow
    key: SliKey
    wanted: float
    target: float | None


def default_objective(key: SliKey, indicators: Sequence[PublishedIndicator]) -> DefaultObjective:
    """The default objective for *key*, one of *indicators*; latency tiers are ascending."""
    if key.sli is not Sli.LATENCY:
        return DEFAULT_OBJECTIVES[key.sli]
    tiers = [each.key.tier for each in indicators if each.key.sli is Sli.LATENCY]
    if key.tier == tiers[0]:
        return FASTEST_TIER
    return SLOWEST_TIER if key.tier == tiers[-1] else MIDDLE_TIER


def default_rules(
    flows: Mapping[Flow, Sequence[PublishedIndicator]],
    *,
    window: float = DEFAULT_WINDOW,
    owner: str = "",
    channel: str = "",
) -> tuple[ObjectiveRule, ...]:
    """One rule for each indicator of *flows*, for all flows if they agree.

    Flows with different latency tiers or event rates get separate rules.
    """
    groups: dict[SliKey, dict[DefaultObjective, list[str]]] = defaultdict(lambda: defaultdict(list))
    for flow, indicators in flows.items():
        for indicator, default, target in _lowered_defaults(indicators, window):
            if target is not None:
                effective = DefaultObjective(target, default.max_severity)
                groups[indicator.key][effective].append(flow.label)
    # A flow without an objective must not match the rule of the other flows.
    without_objective = {
        relaxed.key for relaxed in relaxed_defaults(flows, window) if relaxed.target is None
    }
    return tuple(
        ObjectiveRule(
            flows=ANY_FLOW
            if len(labels_by_default) == 1 and key not in without_objective
            else tuple(labels),
            key=key,
            target=default.target,
            window=window,
            max_severity=default.max_severity,
            owner=owner,
            channel=channel,
        )
        for key, labels_by_default in sorted(groups.items(), key=lambda entry: _position(entry[0]))
        for default, labels in labels_by_default.items()
    )


def relaxed_defaults(
    flows: Mapping[Flow, Sequence[PublishedIndicator]], window: float = DEFAULT_WINDOW
) -> tuple[RelaxedDefault, ...]:
    """The defaults that are lowered because one bad event would breach them."""
    return tuple(
        RelaxedDefault(flow, indicator.key, default.target, target)
        for flow, indicators in flows.items()
        for indicator, default, target in _lowered_defaults(indicators, window)
        if target != default.target
    )


def _lowered_defaults(
    indicators: Sequence[PublishedIndicator], window: float
) -> Iterator[tuple[PublishedIndicator, DefaultObjective, float | None]]:
    for indicator in indicators:
        default = default_objective(indicator.key, indicators)
        target = strictest_target(
            default.target, default.max_severity, window, indicator.events_per_hour
        )
        yield indicator, default, target


def _position(key: SliKey) -> int:
    # The sort is stable: tiers keep their order.
    return list(Sli).index(key.sli)
