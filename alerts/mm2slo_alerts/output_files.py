"""Paths and texts of all files that a configuration generates.

Without a configuration they hold the default objectives for any flow; those files are committed in
`alerts/generated`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_alerts import burn, causes, recording, slack
from mm2slo_alerts.alertmanager import DEFAULT_WEBHOOK_FILE, TEMPLATES, configuration
from mm2slo_alerts.rule_model import PRODUCTION, Links, Scale
from mm2slo_alerts.rule_text import prometheus_rule_resource, prometheus_text
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS
from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.published_indicators import default_objective_rules
from mm2slo_core.config.slo_config import SloConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from mm2slo_alerts.rule_model import Group
    from mm2slo_alerts.thresholds import Thresholds
    from mm2slo_core.config import Config
    from mm2slo_core.config.alerting_config import LinksConfig
    from mm2slo_core.objectives import ObjectiveRule
    from mm2slo_core.topology import Flow

RECORDING_RULES: Final = "prometheus/mm2slo-recording.rules.yml"
ALERT_RULES: Final = "prometheus/mm2slo-alerts.rules.yml"
ALERTMANAGER: Final = "alertmanager/alertmanager.yml"
SLACK_TEMPLATE: Final = f"alertmanager/{TEMPLATES}"
RULE_RESOURCE: Final = "prometheus/mm2slo-rules.prometheusrule.yaml"


def generated(config: Config | None = None, scale: Scale = PRODUCTION) -> dict[str, str]:
    """Return the text of each file by its path below the output folder."""
    rules = default_objective_rules() if config is None else config.objective_rules
    alerting = AlertingConfig() if config is None else config.alerting
    recorded = recording.groups(rules, scale)
    thresholds = replace(DEFAULT_THRESHOLDS, exporter_job=alerting.exporter_job)
    flows = () if config is None else tuple(each.flow for each in config.flows)
    alerts = alert_groups(links(alerting.links), scale, thresholds, flows)
    return {
        RECORDING_RULES: prometheus_text(recorded),
        ALERT_RULES: prometheus_text(alerts),
        RULE_RESOURCE: prometheus_rule_resource((*recorded, *alerts)),
        ALERTMANAGER: configuration(alerting, SloConfig() if config is None else config.slo, scale),
        SLACK_TEMPLATE: slack.template(alerting.links),
    }


def alert_groups(
    to: Links,
    scale: Scale = PRODUCTION,
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    flows: Collection[Flow] = (),
) -> tuple[Group, ...]:
    """All alerts, those about objectives first; *flows* are the configured ones."""
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
