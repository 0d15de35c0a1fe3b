"""Runs all checks on the readable parts of the file, so that one invalid value hides no other.

With the checks of `slo:` against the flows: objectives that cannot alert or have no effect.
"""

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

from pydantic import BaseModel, ValidationError

from mm2slo_core.config import section_checks
from mm2slo_core.config.alerting_config import AlertingConfig, ObjectiveConfig, SloConfig
from mm2slo_core.config.config_document import Path, did_you_mean, value_at
from mm2slo_core.config.config_model import published
from mm2slo_core.config.flow_config import AuditConfig, ClusterConfig, FlowConfig
from mm2slo_core.config.logship_config import LogshipConfig, check_logship
from mm2slo_core.config.section_checks import SectionFinding, within
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
from mm2slo_core.topology import Flow

# Placeholders for invalid required values, so that the rest of the section is still checked.
_ANY_SERVER: Final = {"bootstrap_servers": "unknown:1"}
_ANY_FLOW: Final = {"flow": Flow("\0source", "\0target")}

# Objectives depend on the indicators of the flows and refer to channels.
_SLO_DEPENDENCIES: Final = frozenset({("flows",), ("exporter",), ("alerting",)})

# ("flows", position, field)
_FLOW_FIELD_DEPTH = 3
_Model = TypeVar("_Model", bound=BaseModel)


def check_config(merged: Mapping[str, object], invalid: Sequence[Path]) -> list[SectionFinding]:
    """The findings of all checks; *invalid* are the paths of values that validation rejected.

    A rejected value is replaced by its default. Findings about it or about its section would report
    a value that is not in the file, and are dropped.
    """
    return [finding for finding in _findings(merged) if not _is_unreliable(finding.path, invalid)]


def _is_unreliable(path: Path, invalid: Sequence[Path]) -> bool:
    # The fields of a flow do not depend on each other; those of its sections do.
    if path[:1] == ("slo",) and any(bad[:1] in _SLO_DEPENDENCIES for bad in invalid):
        return True
    of_flow = path[:1] == ("flows",) and len(path) == _FLOW_FIELD_DEPTH
    return any(
        bad == path[: len(bad)] or (not of_flow and path[:-1] == bad[:-1]) for bad in invalid
    )


def _findings(merged: Mapping[str, object]) -> Iterator[SectionFinding]:
    clusters = _mapping(merged.get("clusters"))
    for alias, raw in clusters.items():
        if cluster := _readable(ClusterConfig, raw, _ANY_SERVER):
            yield from within(("clusters", alias), section_checks.check_cluster(cluster))
    exporter = _readable(ExporterConfig, merged.get("exporter", {}), {}) or ExporterConfig()
    yield from within(("exporter",), section_checks.check_exporter(exporter))
    audit = _readable(AuditConfig, merged.get("audit", {}), {}) or AuditConfig()
    yield from within(("audit",), section_checks.check_audit(audit))
    alerting = _readable(AlertingConfig, merged.get("alerting", {}), {}) or AlertingConfig()
    yield from within(("alerting",), section_checks.check_alerting(alerting))
    if logship := _readable(LogshipConfig, merged.get("logship"), {}):
        yield from within(("logship",), check_logship(logship))
    entries = _list(merged.get("flows"))
    named = {
        index: flow for index, raw in enumerate(entries) if (flow := _flow_of(raw)) is not None
    }
    yield from section_checks.check_aliases(named, clusters)
    yield from section_checks.check_names(named)
    flows = {
        index: config
        for index, raw in enumerate(entries)
        if (config := _readable(FlowConfig, raw, _ANY_FLOW)) is not None
    }
    for index, config in flows.items():
        yield from within(("flows", index), section_checks.check_flow(config, exporter))
    flows = {index: config for index, config in flows.items() if index in named}
    yield from section_checks.check_offset_syncs(flows)
    yield from section_checks.check_replication_cycles(flows)
    indicators = {
        index: (config.flow, published(config, exporter.carrier(config.canary)))
        for index, config in flows.items()
    }
    yield from check_ids(indicators)
    slo = _mapping(merged.get("slo"))
    slo_config = _readable(SloConfig, {**slo, "objectives": []}, {}) or SloConfig()
    objectives = {}
    for index, each in enumerate(_list(slo.get("objectives"))):
        with contextlib.suppress(ValidationError):
            objectives[index] = ObjectiveConfig.model_validate(each)
    found = check_slo(slo_config, objectives, alerting, dict(indicators.values()))
    yield from within(("slo",), found)


def _list(raw: object) -> list[object]:
    return raw if isinstance(raw, list) else []


def _mapping(raw: object) -> dict[str, object]:
    return raw if isinstance(raw, dict) else {}


def _flow_of(raw: object) -> Flow | None:
    text = _mapping(raw).get("flow")
    try:
        return Flow.parse(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _readable(
    model: type[_Model], raw: object, placeholders: Mapping[str, object]
) -> _Model | None:
    """*raw* as *model* without invalid values; None if it is not a mapping.

    *placeholders* replace required keys that are missing or invalid.
    """
    if not isinstance(raw, dict):
        return None
    rest = copy.deepcopy(raw)
    try:
        return model.model_validate(raw)
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False, include_input=False):
            _remove(rest, error["loc"])
    try:
        return model.model_validate({**placeholders, **rest})
    except ValidationError:
        # A required key further down is missing, which is already reported.
        return None


def _remove(root: object, path: Path) -> None:
    # Only keys are removed: later errors refer to positions in lists.
    section = value_at(root, path[:-1])
    if path and isinstance(section, dict):
        section.pop(path[-1], None)


Flows = Mapping[Flow, Sequence[PublishedIndicator]]
_OF_CANARY_TOPIC = frozenset({Sli.UNIQUENESS, Sli.ORDER, Sli.AFFINITY})
_BY_SLICE = frozenset({Sli.DATA_FRESHNESS, Sli.CHECKPOINT_FRESHNESS})


def check_slo(
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
        yield from within(("objectives", index), found)
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


def check_ids(
    flows: Mapping[int, tuple[Flow, Sequence[PublishedIndicator]]],
) -> Iterator[SectionFinding]:
    """Ids of objectives are unique. *flows* by their position in the file."""
    claims: dict[str, tuple[Flow, SliKey]] = {}
    for index, (flow, indicators) in flows.items():
        for each in indicators:
            name = slo_id(flow, each.key)
            other, key = claims.setdefault(name, (flow, each.key))
            # Flows with the same id are reported by flow_checks.
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
