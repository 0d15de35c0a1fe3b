"""Checks of `slo:` against the flows: objectives that cannot alert or have no effect."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.durations import format_duration
from mm2slo_core.config.section_checks import Finding, within
from mm2slo_core.config.suggestion import did_you_mean
from mm2slo_core.objectives.flow_patterns import subsumes
from mm2slo_core.objectives.objective import Severity
from mm2slo_core.objectives.quantity_text import percent_text
from mm2slo_core.objectives.slo_ids import slo_id
from mm2slo_core.objectives.traffic_limits import (
    HOUR,
    allowed_pairs,
    is_alertable,
    live_pairs,
    single_event_pairs,
    strictest_target,
    threshold,
)
from mm2slo_core.sli_counters import Sli

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.config.alerting_config import AlertingConfig
    from mm2slo_core.config.slo_config import ObjectiveConfig, SloConfig
    from mm2slo_core.objectives.objective import ObjectiveRule
    from mm2slo_core.objectives.traffic_limits import PublishedIndicator
    from mm2slo_core.sli_counters import SliKey
    from mm2slo_core.topology import Flow

    Flows = Mapping[Flow, Sequence[PublishedIndicator]]

_OF_CANARY_TOPIC = frozenset({Sli.UNIQUENESS, Sli.ORDER, Sli.AFFINITY})
_BY_SLICE = frozenset({Sli.DATA_FRESHNESS, Sli.CHECKPOINT_FRESHNESS})


def check_slo(
    slo: SloConfig,
    objectives: Mapping[int, ObjectiveConfig],
    alerting: AlertingConfig,
    flows: Flows,
) -> Iterator[Finding]:
    """Objectives match an indicator, can alert, do not alert on one event, and have an effect.

    *objectives* by their position in the file, in place of those of *slo*.
    """
    yield from _check_channel(slo.channel, alerting)
    earlier: dict[int, tuple[ObjectiveConfig, set[SliKey]]] = {}
    for index, objective in objectives.items():
        rules = slo.rules_of(objective, flows)
        found = list(_check_objective(objective, rules, alerting, flows))
        yield from within(("objectives", index), found)
        hidden_by = None if found else _hidden_by(objective, rules, earlier)
        if hidden_by is not None:
            yield Finding(
                ("objectives", index, "flows"),
                f"have no effect: slo.objectives[{hidden_by}] already covers these flows and "
                "this indicator",
                "the narrower pattern before the wider one, and each flow and indicator once",
                "move the objective up, or remove it",
            )
        earlier[index] = (objective, {rule.key for rule in rules})


def check_ids(flows: Mapping[int, tuple[Flow, Sequence[PublishedIndicator]]]) -> Iterator[Finding]:
    """Ids of objectives are unique. *flows* by their position in the file."""
    claims: dict[str, tuple[Flow, SliKey]] = {}
    for index, (flow, indicators) in flows.items():
        for each in indicators:
            name = slo_id(flow, each.key)
            other, key = claims.setdefault(name, (flow, each.key))
            # Flows with the same id are reported by flow_checks.
            if (other, key) != (flow, each.key) and (other == flow or other.slug != flow.slug):
                yield Finding(
                    ("flows", index, "freshness"),
                    f"{_text_of(flow, each.key)} and {_text_of(other, key)} share the id {name!r}",
                    "names that differ in more than case and punctuation",
                    "rename a freshness class or an alias",
                )  # fmt: skip


def _text_of(flow: Flow, key: SliKey) -> str:
    return f"{flow.label} {key.sli} {key.tier!r}"


def _check_channel(channel: str | None, alerting: AlertingConfig) -> Iterator[Finding]:
    if channel is None or channel in alerting.channels:
        return
    yield Finding(
        ("channel",), f"unknown channel {channel!r}",
        f"one of {', '.join(alerting.channels)}" if alerting.channels
        else "a name under alerting.slack or alerting.webhooks",
        did_you_mean(channel, alerting.channels, f"add {channel} under alerting.slack"),
    )  # fmt: skip


def _check_objective(
    objective: ObjectiveConfig,
    rules: Sequence[ObjectiveRule],
    alerting: AlertingConfig,
    flows: Flows,
) -> Iterator[Finding]:
    yield from _check_channel(objective.channel, alerting)
    yield from _check_patterns(objective, flows)
    matched = {flow: found for flow, found in flows.items() if objective.covers(flow)}
    if matched and not rules:
        yield _nothing_published(objective, matched)
    # All tiers have the same target, so that the first findings are sufficient.
    for rule in rules:
        found = [_never_alerts(rule)]
        if live_pairs(rule):
            found = list(_check_traffic(objective, rule, matched))
        if found:
            yield from found
            return


def _check_patterns(objective: ObjectiveConfig, flows: Flows) -> Iterator[Finding]:
    labels = [flow.label for flow in flows]
    for position, pattern in enumerate(objective.flows):
        if not any(subsumes(pattern, label) for label in labels):
            yield Finding(
                ("flows", position), f"{pattern!r} matches no flow",
                f"a pattern that matches one of {', '.join(labels)}",
                did_you_mean(pattern, labels, "write us->* or *, for example"),
            )  # fmt: skip


def _nothing_published(objective: ObjectiveConfig, matched: Flows) -> Finding:
    keys = list(dict.fromkeys(each.key for found in matched.values() for each in found))
    names = ", ".join(flow.label for flow in matched)
    tiers = [key.tier for key in keys if key.sli is objective.sli]
    if tiers and objective.tier is not None:
        return Finding(
            ("tier",), f"{objective.tier!r} is not a tier of {objective.sli} in {names}",
            f"one of {', '.join(tiers)}",
            did_you_mean(objective.tier, tiers, "remove tier to cover all of them"),
        )  # fmt: skip
    kinds = ", ".join(dict.fromkeys(key.sli for key in keys))
    next_step = "remove the objective"
    if objective.sli in _OF_CANARY_TOPIC:
        next_step = "set canary.carrier to topic; other carriers cannot measure it"
    elif objective.sli in {Sli.LATENCY, Sli.COMPLETENESS}:
        next_step = "set canary.carrier to heartbeats or topic; it is measured by canaries"
    return Finding(
        ("sli",), f"{objective.sli} is not published for {names}",
        f"one of {kinds}" if kinds else "flows that publish it", next_step,
    )  # fmt: skip


def _never_alerts(rule: ObjectiveRule) -> Finding:
    pairs = allowed_pairs(rule.max_severity)
    figures = ", ".join(
        f"{threshold(pair, rule.target, rule.window):.0%} ({pair.name})" for pair in pairs
    )
    # A pair can fire if factor x (1 - target) < 1.
    lowest = min(1 - 1 / pair.factor(rule.window) for pair in pairs)
    return Finding(
        ("target",),
        f"{percent_text(rule.target)} over {format_duration(rule.window)} can never alert: the "
        f"error ratio would have to exceed {figures}",
        f"a target above {lowest:.1%}",
        "raise the target or shorten the window",
    )


def _check_traffic(
    objective: ObjectiveConfig, rule: ObjectiveRule, matched: Flows
) -> Iterator[Finding]:
    rates = (
        (flow, objective.expected_events or each.events_per_hour)
        for flow, found in matched.items()
        for each in found
        if each.key == rule.key
    )
    flow, events = min(rates, key=lambda entry: entry[1])
    pair = next(iter(single_event_pairs(rule, events)), None)
    if pair is None:
        return
    count = events * pair.long / HOUR
    share = threshold(pair, rule.target, rule.window)
    best = strictest_target(rule.target, rule.max_severity, rule.window, events)
    remedies = [] if best is None else [f"lower the target to {percent_text(best)}"]
    if rule.max_severity is Severity.PAGE and is_alertable(
        rule.target, Severity.TICKET, rule.window, events
    ):
        remedies.append("set max_severity to ticket")
    remedies.append(_more_events(objective, pair.long * share))
    yield Finding(
        ("target",),
        f"{percent_text(rule.target)} is breached by one bad event: {flow.label} has {count:g} "
        f"events in {format_duration(pair.long)}, and the pair {pair.name} alerts above "
        f"{share * count:.2g} bad events",
        f"at least {1 / share:.0f} events in {format_duration(pair.long)}",
        ", or ".join(remedies),
    )


def _more_events(objective: ObjectiveConfig, seconds: float) -> str:
    if objective.expected_events is not None:
        return "correct expected_events"
    if objective.sli in _BY_SLICE:
        return "set expected_events if there are many partitions or groups"
    return f"shorten canary.interval to {seconds:.2g}s"


def _hidden_by(
    objective: ObjectiveConfig,
    rules: Sequence[ObjectiveRule],
    earlier: Mapping[int, tuple[ObjectiveConfig, set[SliKey]]],
) -> int | None:
    """The first of the *earlier* objectives that together cover *objective* completely, or None."""
    hiders = [
        [
            index
            for index, (other, keys) in earlier.items()
            if rule.key in keys and any(subsumes(wide, pattern) for wide in other.flows)
        ]
        for rule in rules
        for pattern in objective.flows
    ]
    return min((each[0] for each in hiders), default=None) if all(hiders) else None
