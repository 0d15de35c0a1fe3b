"""Paths and texts of all files that a configuration generates.

Without a configuration they hold the default objectives for any flow; those files are committed in
`alerts/generated`. The groups of the alerts about causes are put together here.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from mm2slo_alerts import (
    burn_alerts,
    flow_causes,
    platform_causes,
    recording_rules,
    slack_template,
    topic_causes,
)
from mm2slo_alerts.alert_rules import (
    NO_LINKS,
    PRODUCTION,
    AlertRule,
    Group,
    RecordingRule,
    Rule,
    Scale,
    prometheus_rule_resource,
    prometheus_text,
    yaml_text,
)
from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS, Thresholds
from mm2slo_alerts.alertmanager_config import (
    DEFAULT_WEBHOOK_FILE,
    TEMPLATES,
    check_files,
    document,
    document_in_namespace,
)
from mm2slo_alerts.alertmanager_variants import DEFAULT_WEBHOOK_KEY, fragment, resource
from mm2slo_core.catalogue import NAMESPACED
from mm2slo_core.catalogue.promql import add_matcher, equal, quoted
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig, SloConfig
from mm2slo_core.config.config_model import Config, default_objective_rules
from mm2slo_core.objectives.objective import ObjectiveRule
from mm2slo_core.topology import Flow

RECORDING_RULES: Final = "prometheus/mm2slo-recording.rules.yml"
ALERT_RULES: Final = "prometheus/mm2slo-alerts.rules.yml"
ALERTMANAGER: Final = "alertmanager/alertmanager.yml"
FRAGMENT: Final = "alertmanager/mm2slo-fragment.yml"
ALERTMANAGER_CONFIG: Final = "alertmanager/mm2slo.alertmanagerconfig.yaml"
SLACK_TEMPLATE: Final = f"alertmanager/{TEMPLATES}"
RULE_RESOURCE: Final = "prometheus/mm2slo-rules.prometheusrule.yaml"


class GeneratedFormat(StrEnum):
    """What `mm2slo alerts generate` writes."""

    PROMETHEUS = "prometheus"
    PROMETHEUSRULE = "prometheusrule"
    ALERTMANAGER = "alertmanager"
    ALERTMANAGERCONFIG = "alertmanagerconfig"
    FRAGMENT = "fragment"


DEFAULT_FORMATS: Final = (
    GeneratedFormat.PROMETHEUS,
    GeneratedFormat.PROMETHEUSRULE,
    GeneratedFormat.ALERTMANAGER,
)

_DEFAULT: Final = AlertingConfig()


def generated(
    config: Config | None = None,
    scale: Scale = PRODUCTION,
    formats: Collection[GeneratedFormat] = DEFAULT_FORMATS,
    alerting: AlertingConfig = _DEFAULT,
) -> dict[str, str]:
    """Return the text of each file by its path below the output folder.

    *alerting* is used without *config*, for any flow.
    """
    alerting = alerting if config is None else config.alerting
    found: dict[str, str] = {}
    if {GeneratedFormat.PROMETHEUS, GeneratedFormat.PROMETHEUSRULE} & set(formats):
        rules = default_objective_rules() if config is None else config.objective_rules
        recorded = _in_namespace(recording_rules.recording_groups(rules, scale), alerting)
        alerts = configured_alerts(config, scale, alerting)
        if GeneratedFormat.PROMETHEUS in formats:
            found[RECORDING_RULES] = prometheus_text(recorded)
            found[ALERT_RULES] = prometheus_text(alerts)
        if GeneratedFormat.PROMETHEUSRULE in formats:
            found[RULE_RESOURCE] = prometheus_rule_resource((*recorded, *alerts), alerting)
    whole = document(alerting, SloConfig() if config is None else config.slo, scale)
    if GeneratedFormat.ALERTMANAGER in formats:
        found[ALERTMANAGER] = yaml_text(document_in_namespace(whole, alerting.namespace))
    if GeneratedFormat.FRAGMENT in formats:
        part = document_in_namespace(fragment(whole), alerting.namespace)
        found[FRAGMENT] = yaml_text(part)
    if {GeneratedFormat.ALERTMANAGER, GeneratedFormat.FRAGMENT} & set(formats):
        check_files(alerting)
        found[SLACK_TEMPLATE] = slack_template.message_template(alerting)
    if GeneratedFormat.ALERTMANAGERCONFIG in formats:
        found[ALERTMANAGER_CONFIG] = yaml_text(
            resource(whole, alerting, slack_template.message_template(alerting))
        )
    return found


def configured_alerts(
    config: Config | None,
    scale: Scale = PRODUCTION,
    alerting: AlertingConfig = _DEFAULT,
) -> tuple[Group, ...]:
    """The alerts of *config*, with its labels and severities; *alerting* as in `generated`."""
    alerting = alerting if config is None else config.alerting
    # One failed poll is no outage.
    polls = 0.0 if config is None else 2 * config.exporter.poll_interval
    thresholds = replace(
        DEFAULT_THRESHOLDS,
        exporter_job=alerting.exporter_job,
        unreachable_after=max(DEFAULT_THRESHOLDS.unreachable_after, polls),
        flap_after=max(DEFAULT_THRESHOLDS.flap_after, polls),
    )
    flows = {
        each.flow: min(level.threshold for level in each.freshness)
        for each in (() if config is None else config.flows)
    }
    groups = tuple(
        replace(group, rules=tuple(_labelled(rule, alerting) for rule in group.rules))
        for group in alert_groups(alerting.links, scale, thresholds, flows)
    )
    return _in_namespace(groups, alerting)


def _labelled(rule: Rule, config: AlertingConfig) -> Rule:
    if not isinstance(rule, AlertRule):
        return rule
    severities = config.severities.model_dump()
    own = {**rule.labels, "severity": severities.get(rule.labels["severity"], "none")}
    return replace(rule, labels={**config.labels, **own})


def _in_namespace(groups: Sequence[Group], config: AlertingConfig) -> tuple[Group, ...]:
    """*groups* that read and write the series of the namespace only, if there is one.

    Labels of the scrape would not survive `by (flow)`, so each rule adds the namespace again.
    """
    if config.namespace is None:
        return tuple(groups)
    label = {"namespace": config.namespace}
    matcher = equal("namespace", config.namespace)

    def of_template(query: re.Match[str]) -> str:
        return f"printf {quoted(add_matcher(query[1], NAMESPACED, matcher))}"

    def selected(rule: Rule) -> Rule:
        expr = add_matcher(rule.expr, NAMESPACED, matcher)
        chosen = replace(rule, expr=expr, labels={**label, **rule.labels})
        if isinstance(chosen, RecordingRule):
            return chosen
        texts = {name: _QUERY.sub(of_template, text) for name, text in chosen.annotations.items()}
        return replace(chosen, annotations=texts)

    return tuple(replace(group, rules=tuple(map(selected, group.rules))) for group in groups)


_QUERY: Final = re.compile(r'printf "([^"\\]*)"')
"""A query of an annotation, as the format of printf."""


ANY_FLOW: Final[Mapping[Flow, float]] = MappingProxyType({})
"""The flows of rules without a configuration."""


def alert_groups(
    links: LinksConfig = NO_LINKS,
    scale: Scale = PRODUCTION,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    flows: Mapping[Flow, float] = ANY_FLOW,
) -> tuple[Group, ...]:
    """All alerts, those about objectives first.

    *flows* are the configured ones, with their freshness thresholds (seconds).
    """
    return (
        *burn_alerts.burn_groups(thresholds, links, scale),
        *cause_groups(thresholds, links, scale, flows),
    )


def notices(
    config: Config | None = None, formats: Collection[GeneratedFormat] = DEFAULT_FORMATS
) -> tuple[str, ...]:
    """Return warnings about the files: pairs that can never fire, no channel."""
    rules: Sequence[ObjectiveRule]
    rules = default_objective_rules() if config is None else config.objective_rules
    found = burn_alerts.burn_notices(rules)
    places = []
    if config is None or not config.alerting.channels:
        if {GeneratedFormat.ALERTMANAGER, GeneratedFormat.FRAGMENT} & set(formats):
            places.append(DEFAULT_WEBHOOK_FILE)
        if GeneratedFormat.ALERTMANAGERCONFIG in formats:
            places.append(DEFAULT_WEBHOOK_KEY)
    webhook = "alerting has no channel: Alertmanager posts to the Slack webhook in"
    return (*found, *(f"{webhook} {place}" for place in places))


def cause_groups(
    thresholds: Thresholds,
    links: LinksConfig,
    scale: Scale,
    expected: Mapping[Flow, float] = ANY_FLOW,
) -> tuple[Group, ...]:
    """Return one rule group per subject, its times shortened by *scale*.

    *expected* are the flows of a configuration with their freshness thresholds (seconds); without
    them, rules remember the flows they saw.
    """
    limits = thresholds.scaled(scale)
    subjects = {
        "flow": flow_causes.build_flow_causes(limits, expected),
        "topics": topic_causes.build_topic_causes(limits),
        "failover": topic_causes.build_failover_causes(limits),
        "clusters": platform_causes.build_cluster_causes(limits),
        "platform": platform_causes.build_platform_causes(limits),
    }
    recorded = {
        "flow": flow_causes.build_flow_recordings(
            limits, {flow: scale(threshold) for flow, threshold in expected.items()}
        ),
        "clusters": platform_causes.build_cluster_recordings(limits),
    }
    return tuple(
        Group(
            name=f"mm2slo-causes-{subject}",
            interval=limits.interval,
            rules=(*recorded.get(subject, ()), *(cause.rule(links) for cause in causes)),
        )
        for subject, causes in subjects.items()
    )
