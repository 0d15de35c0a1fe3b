"""Paths and texts of all files that a configuration generates.

Without a configuration they hold the default objectives for any flow; those files are committed in
`alerts/generated`.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from mm2slo_alerts import burn, causes, recording, slack
from mm2slo_alerts.alertmanager import DEFAULT_WEBHOOK_FILE, TEMPLATES, document
from mm2slo_alerts.alertmanager.fragment import fragment
from mm2slo_alerts.alertmanager.operator_resource import resource
from mm2slo_alerts.alertmanager.receivers import check_files
from mm2slo_alerts.rule_model import PRODUCTION, AlertRule, Links, Scale
from mm2slo_alerts.rule_text import prometheus_rule_resource, prometheus_text, yaml_text
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.published_indicators import default_objective_rules
from mm2slo_core.config.slo_config import SloConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mm2slo_alerts.rule_model import Group, Rule
    from mm2slo_alerts.thresholds import Thresholds
    from mm2slo_core.config import Config
    from mm2slo_core.config.alerting_config import LinksConfig
    from mm2slo_core.objectives import ObjectiveRule
    from mm2slo_core.topology import Flow

RECORDING_RULES: Final = "prometheus/mm2slo-recording.rules.yml"
ALERT_RULES: Final = "prometheus/mm2slo-alerts.rules.yml"
ALERTMANAGER: Final = "alertmanager/alertmanager.yml"
FRAGMENT: Final = "alertmanager/mm2slo-fragment.yml"
ALERTMANAGER_CONFIG: Final = "alertmanager/mm2slo.alertmanagerconfig.yaml"
SLACK_TEMPLATE: Final = f"alertmanager/{TEMPLATES}"
RULE_RESOURCE: Final = "prometheus/mm2slo-rules.prometheusrule.yaml"


class Format(StrEnum):
    """What `mm2slo alerts generate` writes."""

    PROMETHEUS = "prometheus"
    PROMETHEUSRULE = "prometheusrule"
    ALERTMANAGER = "alertmanager"
    ALERTMANAGERCONFIG = "alertmanagerconfig"
    FRAGMENT = "fragment"


DEFAULT_FORMATS: Final = (Format.PROMETHEUS, Format.PROMETHEUSRULE, Format.ALERTMANAGER)


def generated(
    config: Config | None = None,
    scale: Scale = PRODUCTION,
    formats: Collection[Format] = DEFAULT_FORMATS,
) -> dict[str, str]:
    """Return the text of each file by its path below the output folder."""
    alerting = AlertingConfig() if config is None else config.alerting
    found: dict[str, str] = {}
    if {Format.PROMETHEUS, Format.PROMETHEUSRULE} & set(formats):
        rules = default_objective_rules() if config is None else config.objective_rules
        recorded = recording.groups(rules, scale)
        alerts = configured_alerts(config, scale)
        if Format.PROMETHEUS in formats:
            found[RECORDING_RULES] = prometheus_text(recorded)
            found[ALERT_RULES] = prometheus_text(alerts)
        if Format.PROMETHEUSRULE in formats:
            found[RULE_RESOURCE] = prometheus_rule_resource((*recorded, *alerts), alerting)
    whole = document(alerting, SloConfig() if config is None else config.slo, scale)
    if Format.ALERTMANAGER in formats:
        found[ALERTMANAGER] = yaml_text(whole)
    if Format.FRAGMENT in formats:
        found[FRAGMENT] = yaml_text(fragment(whole))
    if {Format.ALERTMANAGER, Format.FRAGMENT} & set(formats):
        check_files(alerting)
        found[SLACK_TEMPLATE] = slack.template(alerting)
    if Format.ALERTMANAGERCONFIG in formats:
        found[ALERTMANAGER_CONFIG] = yaml_text(resource(whole, alerting, slack.template(alerting)))
    return found


def configured_alerts(config: Config | None, scale: Scale = PRODUCTION) -> tuple[Group, ...]:
    """The alerts of *config*, with its labels and severities."""
    alerting = AlertingConfig() if config is None else config.alerting
    thresholds = replace(DEFAULT_THRESHOLDS, exporter_job=alerting.exporter_job)
    flows = {
        each.flow: min(level.threshold for level in each.freshness)
        for each in (() if config is None else config.flows)
    }
    return tuple(
        replace(group, rules=tuple(_labelled(rule, alerting) for rule in group.rules))
        for group in alert_groups(links(alerting.links), scale, thresholds, flows)
    )


def _labelled(rule: Rule, config: AlertingConfig) -> Rule:
    if not isinstance(rule, AlertRule):
        return rule
    severities = config.severities.model_dump()
    own = {**rule.labels, "severity": severities.get(rule.labels["severity"], "none")}
    namespace = {"namespace": config.namespace} if config.namespace else {}
    return replace(rule, labels={**config.labels, **namespace, **own})


def alert_groups(
    to: Links,
    scale: Scale = PRODUCTION,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    flows: Mapping[Flow, float] = causes.ANY_FLOW,
) -> tuple[Group, ...]:
    """All alerts, those about objectives first.

    *flows* are the configured ones, with their freshness thresholds (seconds).
    """
    return (
        *burn.groups(thresholds, to, scale),
        *causes.groups(thresholds, to, scale, flows),
    )


def links(config: LinksConfig) -> Links:
    return Links(
        runbook=config.runbook,
        dashboard=config.dashboard,
        report=config.report,
        prometheus=config.prometheus,
        alertmanager=config.alertmanager,
        splunk=config.splunk,
    )


def notices(config: Config | None = None) -> tuple[str, ...]:
    """Return warnings about the files: pairs that can never fire, no channel."""
    rules: Sequence[ObjectiveRule]
    rules = default_objective_rules() if config is None else config.objective_rules
    found = burn.notices(rules)
    if config is None or not config.alerting.channels:
        channel = (
            "alerting has no channel: Alertmanager posts to the Slack webhook in "
            f"{DEFAULT_WEBHOOK_FILE}"
        )
        return (*found, channel)
    return found
