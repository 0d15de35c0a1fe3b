"""The objectives of a flow for which none are configured."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.objectives.objective import DEFAULT_WINDOW, ObjectiveRule, Severity
from mm2slo_core.objectives.traffic import strictest
from mm2slo_core.sli import Sli

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.objectives.traffic import Published
    from mm2slo_core.sli import SliKey
    from mm2slo_core.topology import Flow

ANY_FLOW: Final = ("*",)


class Promise(NamedTuple):
    """A target, and the gravest severity that it may alert with."""

    target: float
    worst: Severity


DEFAULT_PROMISES: Final[Mapping[Sli, Promise]] = {
    Sli.AVAILABILITY: Promise(0.999, Severity.PAGE),
    Sli.DATA_FRESHNESS: Promise(0.995, Severity.PAGE),
    Sli.COMPLETENESS: Promise(0.9999, Severity.TICKET),
    Sli.UNIQUENESS: Promise(0.999, Severity.TICKET),
    Sli.ORDER: Promise(0.999, Severity.TICKET),
    Sli.AFFINITY: Promise(0.999, Severity.TICKET),
    Sli.CHECKPOINT_FRESHNESS: Promise(0.99, Severity.TICKET),
}
"""Of every indicator but latency, whose tiers differ."""
FASTEST_TIER: Final = Promise(0.99, Severity.TICKET)
"""Of the smallest latency threshold: room for restarts and rebalances."""
MIDDLE_TIER: Final = Promise(0.995, Severity.TICKET)
SLOWEST_TIER: Final = Promise(0.999, Severity.PAGE)
"""Of the largest one, where there are several: close to what availability promises."""


class Relaxed(NamedTuple):
    """A default that the traffic of a flow does not carry; `target` is None when none is left."""

    flow: Flow
    key: SliKey
    wanted: float
    target: float | None


def default_promise(key: SliKey, indicators: Sequence[Published]) -> Promise:
    """What is promised of *key*, one of a flow's *indicators*; latency tiers are ascending."""
    if key.sli is not Sli.LATENCY:
        return DEFAULT_PROMISES[key.sli]
    tiers = [each.key.tier for each in indicators if each.key.sli is Sli.LATENCY]
    if key.tier == tiers[0]:
        return FASTEST_TIER
    return SLOWEST_TIER if key.tier == tiers[-1] else MIDDLE_TIER


def default_rules(
    flows: Mapping[Flow, Sequence[Published]],
    *,
    window: float = DEFAULT_WINDOW,
    owner: str = "",
    channel: str = "",
) -> tuple[ObjectiveRule, ...]:
    """One rule for each indicator of *flows*, for all flows where they agree.

    Flows whose latency tiers or traffic differ get rules of their own.
    """
    groups: dict[SliKey, dict[Promise, list[str]]] = defaultdict(lambda: defaultdict(list))
    for flow, indicators in flows.items():
        for indicator, promise, target in _promises(indicators, window):
            if target is not None:
                held = Promise(target, promise.worst)
                groups[indicator.key][held].append(flow.label)
    # A flow that is left without an objective must not get that of the others.
    left_out = {
        relaxed.key for relaxed in relaxed_defaults(flows, window) if relaxed.target is None
    }
    return tuple(
        ObjectiveRule(
            flows=ANY_FLOW if len(held) == 1 and key not in left_out else tuple(labels),
            key=key,
            target=promise.target,
            window=window,
            worst=promise.worst,
            owner=owner,
            channel=channel,
        )
        for key, held in sorted(groups.items(), key=lambda entry: _place(entry[0]))
        for promise, labels in held.items()
    )


def relaxed_defaults(
    flows: Mapping[Flow, Sequence[Published]], window: float = DEFAULT_WINDOW
) -> tuple[Relaxed, ...]:
    """The defaults that are lower than usual, because one bad event would breach them."""
    return tuple(
        Relaxed(flow, indicator.key, promise.target, target)
        for flow, indicators in flows.items()
        for indicator, promise, target in _promises(indicators, window)
        if target != promise.target
    )


def _promises(
    indicators: Sequence[Published], window: float
) -> Iterator[tuple[Published, Promise, float | None]]:
    for indicator in indicators:
        promise = default_promise(indicator.key, indicators)
        target = strictest(promise.target, promise.worst, window, indicator.events_per_hour)
        yield indicator, promise, target


def _place(key: SliKey) -> int:
    # Stable: tiers stay in the order of the flows.
    return list(Sli).index(key.sli)
