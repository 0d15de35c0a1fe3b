"""Checks between sections: flows and clusters, flows and each other, objectives and flows.

What concerns one section only is checked by its model (`Section.check`).
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import ValidationError

from mm2slo_core.config.alerting_config import AlertingConfig, ObjectiveConfig, SloConfig
from mm2slo_core.config.config_document import Path, did_you_mean
from mm2slo_core.config.config_model import published
from mm2slo_core.config.config_section import SectionFinding, is_unreliable, readable
from mm2slo_core.config.exporter_settings import CanaryCarrier, PolicyKind
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.config.service_config import ExporterConfig
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.objective import (
    HOUR,
    ObjectiveRule,
    PublishedIndicator,
    Severity,
    allowed_pairs,
    is_alertable,
    live_pairs,
    single_event_pairs,
    slo_id,
    strictest_target,
    subsumes,
    threshold,
)
from mm2slo_core.quantity_text import format_duration, percent_text
from mm2slo_core.replication_policy import DefaultPolicy, PlacedTopic, internal_topics
from mm2slo_core.topology import Flow, slug_collisions

# Objectives depend on the indicators of the flows and refer to channels.
_SLO_DEPENDENCIES: Final = frozenset({"flows", "exporter", "alerting"})

# ("flows", position, field)
_FLOW_FIELD_DEPTH = 3


def check_config(merged: Mapping[str, object], rejected: Sequence[Path]) -> list[SectionFinding]:
    """The findings of checks between sections; *rejected* are the paths of invalid values.

    Sections are read with defaults in place of invalid values, so that one hides no other problem.
    Findings that may be about such a default are dropped.
    """
    is_slo_reliable = not any(_SLO_DEPENDENCIES.intersection(bad[:1]) for bad in rejected)
    return [
        finding
        for finding in _findings(merged)
        if (is_slo_reliable or finding.path[0] != "slo")
        and not is_unreliable(
            finding.path,
            rejected,
            # The fields of a flow do not depend on each other; those of its sections do.
            is_independent=finding.path[0] == "flows" and len(finding.path) == _FLOW_FIELD_DEPTH,
        )
    ]


def _findings(merged: Mapping[str, object]) -> Iterator[SectionFinding]:
    exporter = readable(ExporterConfig, merged.get("exporter", {})) or ExporterConfig()
    alerting = readable(AlertingConfig, merged.get("alerting", {})) or AlertingConfig()
    entries = _list(merged.get("flows"))
    named = {index: flow for index, raw in enumerate(entries) if (flow := flow_of(raw)) is not None}
    yield from _check_aliases(named, _mapping(merged.get("clusters")))
    yield from _check_names(named)
    flows = {
        index: config
        for index, raw in enumerate(entries)
        if (config := readable(FlowConfig, raw)) is not None
    }
    yield from _check_slices(flows, exporter)
    flows = {index: config for index, config in flows.items() if index in named}
    yield from check_offset_syncs(flows)
    yield from _check_replication_cycles(flows)
    indicators = {
        index: (config.flow, published(config, exporter.carrier(config.canary)))
        for index, config in flows.items()
    }
    yield from _check_ids(indicators)
    slo = _mapping(merged.get("slo"))
    slo_config = readable(SloConfig, {**slo, "objectives": []}) or SloConfig()
    objectives = {}
    for index, each in enumerate(_list(slo.get("objectives"))):
        with contextlib.suppress(ValidationError):
            objectives[index] = ObjectiveConfig.model_validate(each)
    found = _check_slo(slo_config, objectives, alerting, dict(indicators.values()))
    yield from _within(("slo",), found)


def _within(path: Path, findings: Iterable[SectionFinding]) -> Iterator[SectionFinding]:
    """*findings* of the section at *path*, relative to the section around it."""
    return (each._replace(path=(*path, *each.path)) for each in findings)


def _list(raw: object) -> list[object]:
    return raw if isinstance(raw, list) else []


def _mapping(raw: object) -> dict[str, object]:
    return raw if isinstance(raw, dict) else {}


def flow_of(raw: object) -> Flow | None:
    """The flow of an entry of `flows:`; None if it has none that is valid."""
    text = _mapping(raw).get("flow")
    try:
        return Flow.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _check_aliases(
    flows: Mapping[int, Flow], clusters: Mapping[str, object]
) -> Iterator[SectionFinding]:
    """All flows are between configured clusters. *flows* by their position in the file."""
    for index, flow in flows.items():
        for alias in (flow.source, flow.target):
            if alias not in clusters:
                yield SectionFinding(
                    ("flows", index, "flow"),
                    f"{flow.label!r} refers to the unknown cluster {alias!r}",
                    f"one of {', '.join(clusters)}" if clusters else "a cluster under clusters",
                    did_you_mean(alias, clusters, f"add {alias} under clusters"),
                )  # fmt: skip


def _check_names(flows: Mapping[int, Flow]) -> Iterator[SectionFinding]:
    """Flows and their ids are unique."""
    first: dict[Flow, int] = {}
    for index, flow in flows.items():
        if flow in first:
            yield SectionFinding(
                ("flows", index, "flow"),
                f"{flow.label!r} is already configured as flows[{first[flow]}]",
                "each flow once", "merge the two entries",
            )  # fmt: skip
        first.setdefault(flow, index)
    for slug, claims in slug_collisions(first).items():
        yield SectionFinding(
            ("flows", max(first[flow] for flow in claims), "flow"),
            f"the flows {', '.join(flow.label for flow in claims)} share the id {slug!r}",
            "aliases that differ in more than case and punctuation", "rename an alias",
        )  # fmt: skip


def check_offset_syncs(flows: Mapping[int, FlowConfig]) -> Iterator[SectionFinding]:
    """Each flow has its own offset-syncs topic: the records do not contain the flow.

    On cluster A, A->B with location `source` and B->A with location `target` both use
    `mm2-offset-syncs.B.internal`.
    """
    writers: dict[PlacedTopic, list[int]] = defaultdict(list)
    for index, config in flows.items():
        if config.by_mirrormaker:
            # Policies of both kinds give these topics the same names.
            policy = DefaultPolicy(config.policy.separator, config.policy.internal_separator)
            location = config.offset_syncs_location
            writers[internal_topics(config.flow, policy, location).offset_syncs].append(index)
    for (holder, topic), indexes in writers.items():
        labels = {flows[index].label for index in indexes}
        if len(labels) > 1:
            yield SectionFinding(
                ("flows", max(indexes), "offset_syncs_location"),
                f"the flows {', '.join(sorted(labels))} share the topic {topic!r} on {holder!r}",
                "one offset-syncs topic per flow, otherwise their offsets cannot be translated",
                "set the same offset-syncs.topic.location for both flows in MirrorMaker 2 and here",
            )  # fmt: skip


def _check_replication_cycles(flows: Mapping[int, FlowConfig]) -> Iterator[SectionFinding]:
    """Under the identity policy, no canary topic is replicated back to its source."""
    first: dict[Flow, str] = {}
    for index, config in flows.items():
        if config.policy.kind is not PolicyKind.IDENTITY:
            continue
        if config.canary.carrier is not CanaryCarrier.TOPIC:
            continue
        topic = first.setdefault(config.flow, config.canary.topic)
        if first.get(config.flow.reverse) == topic:
            yield SectionFinding(
                ("flows", index, "canary", "topic"),
                f"{topic!r} is replicated in a cycle: {config.flow.reverse} has the same canary "
                "topic, and the identity policy does not mark the source",
                "a topic other than that of the reverse flow",
                "use one topic per flow, and include each in the topics of its own flow only",
            )  # fmt: skip


def _check_slices(
    flows: Mapping[int, FlowConfig], exporter: ExporterConfig
) -> Iterator[SectionFinding]:
    for index, flow in flows.items():
        if flow.slice < exporter.poll_interval:
            yield SectionFinding(
                ("flows", index, "slice"),
                f"{format_duration(flow.slice)} is shorter than exporter.poll_interval",
                f"at least {format_duration(exporter.poll_interval)}, so that each slice has a "
                "sample",
                "increase slice or decrease poll_interval",
            )  # fmt: skip


Flows = Mapping[Flow, Sequence[PublishedIndicator]]
_OF_CANARY_TOPIC = frozenset({Sli.UNIQUENESS, Sli.ORDER, Sli.AFFINITY})
_BY_SLICE = frozenset({Sli.DATA_FRESHNESS, Sli.CHECKPOINT_FRESHNESS})


def _check_slo(
    slo: SloConfig,
    objectives: Mapping[int, ObjectiveConfig],
    alerting: AlertingConfig,
    flows: Flows,
) -> Iterator[SectionFinding]:
    """Objectives match an indicator, can alert, do not alert on one event, and have an effect.

    *objectives* by their position in the file, in place of those of *slo*.
    """
    yield from _check_channel(slo.channel, alerting)
    earlier: dict[int, tuple[ObjectiveConfig, set[SliKey]]] = {}
    for index, objective in objectives.items():
        rules = slo.rules_of(objective, flows)
        found = list(_check_objective(objective, rules, alerting, flows))
        yield from _within(("objectives", index), found)
        hidden_by = None if found else _hidden_by(objective, rules, earlier)
        if hidden_by is not None:
            yield SectionFinding(
                ("objectives", index, "flows"),
                f"have no effect: slo.objectives[{hidden_by}] already covers these flows and "
                "this indicator",
                "the narrower pattern before the wider one, and each flow and indicator once",
                "move the objective up, or remove it",
            )
        earlier[index] = (objective, {rule.key for rule in rules})


def _check_ids(
    flows: Mapping[int, tuple[Flow, Sequence[PublishedIndicator]]],
) -> Iterator[SectionFinding]:
    """Ids of objectives are unique. *flows* by their position in the file."""
    claims: dict[str, tuple[Flow, SliKey]] = {}
    for index, (flow, indicators) in flows.items():
        for each in indicators:
            name = slo_id(flow, each.key)
            other, key = claims.setdefault(name, (flow, each.key))
            # Flows with the same id are reported by _check_names.
            if (other, key) != (flow, each.key) and (other == flow or other.slug != flow.slug):
                yield SectionFinding(
                    ("flows", index, "freshness"),
                    f"{_text_of(flow, each.key)} and {_text_of(other, key)} share the id {name!r}",
                    "names that differ in more than case and punctuation",
                    "rename a freshness class or an alias",
                )  # fmt: skip


def _text_of(flow: Flow, key: SliKey) -> str:
    return f"{flow.label} {key.sli} {key.tier!r}"


def _check_channel(channel: str | None, alerting: AlertingConfig) -> Iterator[SectionFinding]:
    if channel is None or channel in alerting.channels:
        return
    yield SectionFinding(
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
) -> Iterator[SectionFinding]:
    yield from _check_channel(objective.channel, alerting)
    yield from _check_patterns(objective, flows)
    matched = {flow: found for flow, found in flows.items() if objective.covers(flow)}
    if matched and not rules:
        yield _nothing_published(objective, matched)
    # An objective whose alerts cannot fire would always look healthy; one that a single bad event
    # breaches would page for each.
    # All tiers have the same target, so that the first findings are sufficient.
    for rule in rules:
        found = [_never_alerts(rule)]
        if live_pairs(rule):
            found = list(_check_traffic(objective, rule, matched))
        if found:
            yield from found
            return


def _check_patterns(objective: ObjectiveConfig, flows: Flows) -> Iterator[SectionFinding]:
    labels = [flow.label for flow in flows]
    for position, pattern in enumerate(objective.flows):
        if not any(subsumes(pattern, label) for label in labels):
            yield SectionFinding(
                ("flows", position), f"{pattern!r} matches no flow",
                f"a pattern that matches one of {', '.join(labels)}",
                did_you_mean(pattern, labels, "write us->* or *, for example"),
            )  # fmt: skip


def _nothing_published(objective: ObjectiveConfig, matched: Flows) -> SectionFinding:
    keys = list(dict.fromkeys(each.key for found in matched.values() for each in found))
    names = ", ".join(flow.label for flow in matched)
    tiers = [key.tier for key in keys if key.sli is objective.sli]
    if tiers and objective.tier is not None:
        return SectionFinding(
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
    return SectionFinding(
        ("sli",), f"{objective.sli} is not published for {names}",
        f"one of {kinds}" if kinds else "flows that publish it", next_step,
    )  # fmt: skip


def _never_alerts(rule: ObjectiveRule) -> SectionFinding:
    pairs = allowed_pairs(rule.max_severity)
    figures = ", ".join(
        f"{threshold(pair, rule.target, rule.window):.0%} ({pair.name})" for pair in pairs
    )
    # A pair can fire if factor x (1 - target) < 1.
    lowest = min(1 - 1 / pair.factor(rule.window) for pair in pairs)
    return SectionFinding(
        ("target",),
        f"{percent_text(rule.target)} over {format_duration(rule.window)} can never alert: the "
        f"error ratio would have to exceed {figures}",
        f"a target above {lowest:.1%}",
        "raise the target or shorten the window",
    )


def _check_traffic(
    objective: ObjectiveConfig, rule: ObjectiveRule, matched: Flows
) -> Iterator[SectionFinding]:
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
    yield SectionFinding(
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
