"""Checks of `slo:` against the flows: objectives that nothing could watch, or that never hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.durations import format_duration
from mm2slo_core.config.nearest import nearest
from mm2slo_core.config.rules import Finding
from mm2slo_core.config.shares import format_share
from mm2slo_core.objectives.ids import slo_id
from mm2slo_core.objectives.objective import Severity
from mm2slo_core.objectives.patterns import subsumes
from mm2slo_core.objectives.traffic import (
    HOUR,
    carries,
    hasty_pairs,
    live_pairs,
    strictest,
    threshold,
    watching,
)
from mm2slo_core.sli import Sli

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mm2slo_core.config.alerting import AlertingConfig
    from mm2slo_core.config.slo import ObjectiveConfig, SloConfig
    from mm2slo_core.objectives.objective import ObjectiveRule
    from mm2slo_core.objectives.traffic import Published
    from mm2slo_core.sli import SliKey
    from mm2slo_core.topology import Flow

    Flows = Mapping[Flow, Sequence[Published]]

_OF_CANARY_TOPIC = frozenset({Sli.UNIQUENESS, Sli.ORDER, Sli.AFFINITY})
_BY_SLICE = frozenset({Sli.DATA_FRESHNESS, Sli.CHECKPOINT_FRESHNESS})


def check_slo(
    slo: SloConfig,
    objectives: Mapping[int, ObjectiveConfig],
    alerting: AlertingConfig,
    flows: Flows,
) -> Iterator[Finding]:
    """Objectives are about something, can alert, do not alert on one event, and hold somewhere.

    *objectives* by their position in the file; those of *slo* itself are not looked at.
    """
    yield from _check_channel(slo.channel, alerting)
    readable: dict[int, tuple[ObjectiveConfig, set[SliKey]]] = {}
    for index, objective in objectives.items():
        rules = slo.rules_of(objective, flows)
        found = list(_check_objective(objective, rules, alerting, flows))
        for finding in found:
            yield finding._replace(path=("objectives", index, *finding.path))
        if not found:
            hidden_by = _hidden_by(objective, rules, readable)
            if hidden_by is not None:
                yield Finding(
                    ("objectives", index, "flows"),
                    f"never hold: slo.objectives[{hidden_by}] comes first for the same flows and "
                    "indicator",
                    "the narrower pattern before the wider one, and each flow and indicator once",
                    "move the objective up, or remove it",
                )  # fmt: skip
        readable[index] = (objective, {rule.key for rule in rules})


def check_ids(flows: Mapping[int, tuple[Flow, Sequence[Published]]]) -> Iterator[Finding]:
    """No two objectives share an id. *flows* by their position in the file."""
    claims: dict[str, tuple[Flow, SliKey]] = {}
    for index, (flow, indicators) in flows.items():
        for each in indicators:
            name = slo_id(flow, each.key)
            other, key = claims.setdefault(name, (flow, each.key))
            # Flows that share an id of their own are told of once, by that.
            if (other, key) != (flow, each.key) and (other == flow or other.slug != flow.slug):
                yield Finding(
                    ("flows", index, "freshness"),
                    f"{_told(flow, each.key)} and {_told(other, key)} share the id {name!r}",
                    "names that differ in more than case and punctuation",
                    "rename a freshness class or an alias",
                )  # fmt: skip


def _told(flow: Flow, key: SliKey) -> str:
    return f"{flow.label} {key.sli} {key.tier!r}"


def _check_channel(channel: str | None, alerting: AlertingConfig) -> Iterator[Finding]:
    if channel is None or channel in alerting.channels:
        return
    close = nearest(channel, alerting.channels)
    yield Finding(
        ("channel",), f"{channel!r} is no configured channel",
        f"one of {', '.join(alerting.channels)}" if alerting.channels
        else "a name under alerting.slack or alerting.webhooks",
        f"did you mean {close!r}?" if close else f"add {channel} under alerting.slack",
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
    # Every tier has the same target: the first finding tells it all.
    judged = (_check_alerts(objective, rule, matched) for rule in rules)
    yield from next((found for found in judged if found), ())


def _check_patterns(objective: ObjectiveConfig, flows: Flows) -> Iterator[Finding]:
    labels = [flow.label for flow in flows]
    for position, pattern in enumerate(objective.flows):
        if not any(subsumes(pattern, label) for label in labels):
            close = nearest(pattern, labels)
            yield Finding(
                ("flows", position), f"{pattern!r} matches no flow",
                f"a pattern of {', '.join(labels)}",
                f"did you mean {close!r}?" if close else "write us->* or *, for example",
            )  # fmt: skip


def _nothing_published(objective: ObjectiveConfig, matched: Flows) -> Finding:
    keys = list(dict.fromkeys(each.key for found in matched.values() for each in found))
    names = ", ".join(flow.label for flow in matched)
    tiers = [key.tier for key in keys if key.sli is objective.sli]
    if tiers and objective.tier is not None:
        close = nearest(objective.tier, tiers)
        return Finding(
            ("tier",), f"{objective.tier!r} is no tier of {objective.sli} in {names}",
            f"one of {', '.join(tiers)}",
            f"did you mean {close!r}?" if close else "leave it out for all of them",
        )  # fmt: skip
    kinds = ", ".join(dict.fromkeys(key.sli for key in keys))
    next_step = "remove the objective"
    if objective.sli in _OF_CANARY_TOPIC:
        next_step = "set canary.carrier to topic: other carriers do not tell it"
    elif objective.sli in {Sli.LATENCY, Sli.COMPLETENESS}:
        next_step = "set canary.carrier to heartbeats or topic: without canaries nobody can tell it"
    return Finding(
        ("sli",), f"{objective.sli} is not published of {names}",
        f"one of {kinds}" if kinds else "flows that publish it", next_step,
    )  # fmt: skip


def _check_alerts(
    objective: ObjectiveConfig, rule: ObjectiveRule, matched: Flows
) -> tuple[Finding, ...]:
    if live_pairs(rule):
        return tuple(_check_traffic(objective, rule, matched))
    return (_dead(rule),)


def _dead(rule: ObjectiveRule) -> Finding:
    pairs = watching(rule.worst)
    figures = ", ".join(
        f"{pair.name} above {threshold(pair, rule.target, rule.window):.0%}" for pair in pairs
    )
    # A pair is alive where factor x (1 - target) < 1.
    lowest = min(1 - 1 / pair.factor(rule.window) for pair in pairs)
    return Finding(
        ("target",),
        f"{format_share(rule.target)} over {format_duration(rule.window)} can never alert: of all "
        f"events {figures} would have to be bad",
        f"a target above {lowest:.1%}",
        "raise the target or shorten the window",
    )


def _check_traffic(
    objective: ObjectiveConfig, rule: ObjectiveRule, matched: Flows
) -> Iterator[Finding]:
    flow, events = min(
        (
            (flow, objective.expected_events or each.events_per_hour)
            for flow, found in matched.items()
            for each in found
            if each.key == rule.key
        ),
        key=lambda entry: entry[1],
    )
    hasty = hasty_pairs(rule, events)
    if not hasty:
        return
    pair = hasty[0]
    count = events * pair.long / HOUR
    share = threshold(pair, rule.target, rule.window)
    best = strictest(rule.target, rule.worst, rule.window, events)
    ways = [] if best is None else [f"lower the target to {format_share(best)}"]
    if rule.worst is Severity.PAGE and carries(rule.target, Severity.TICKET, rule.window, events):
        ways.append("set worst to ticket")
    ways.append(_more_events(objective, pair.long * share))
    yield Finding(
        ("target",),
        f"{format_share(rule.target)} is breached by one bad event: {flow.label} has {count:g} "
        f"events in {format_duration(pair.long)}, and the pair {pair.name} alerts above "
        f"{share * count:.2g} of them",
        f"at least {1 / share:.0f} events in {format_duration(pair.long)}",
        ", or ".join(ways),
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
    """The first of the *earlier* objectives that leave nothing to *objective*; None if it holds."""
    hiders = []
    for rule in rules:
        for pattern in objective.flows:
            hider = next(
                (
                    index
                    for index, (other, keys) in earlier.items()
                    if rule.key in keys and any(subsumes(wide, pattern) for wide in other.flows)
                ),
                None,
            )
            if hider is None:
                return None
            hiders.append(hider)
    return min(hiders, default=None)
