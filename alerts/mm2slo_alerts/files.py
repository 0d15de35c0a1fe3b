"""Every generated file of a configuration: its place and its text.

Without a configuration the objectives are the defaults, for all flows: those files are committed
in `alerts/generated` and work with any exporter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_alerts import aftermath, burn, causes, recording, slack
from mm2slo_alerts.alertmanager import DEFAULT_WEBHOOK_FILE, TEMPLATES, configuration
from mm2slo_alerts.model import PRODUCTION, Links, Scale
from mm2slo_alerts.render import prometheus_rule_resource, prometheus_text
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS
from mm2slo_core.config.alerting import AlertingConfig
from mm2slo_core.config.published import default_objective_rules
from mm2slo_core.config.slo import SloConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_alerts.model import Group
    from mm2slo_alerts.thresholds import Thresholds
    from mm2slo_core.config import Config
    from mm2slo_core.config.alerting import LinksConfig
    from mm2slo_core.objectives import ObjectiveRule

RECORDING_RULES: Final = "prometheus/mm2slo-recording.rules.yml"
ALERT_RULES: Final = "prometheus/mm2slo-alerts.rules.yml"
ALERTMANAGER: Final = "alertmanager/alertmanager.yml"
SLACK_TEMPLATE: Final = f"alertmanager/{TEMPLATES}"
RULE_RESOURCE: Final = "prometheus/mm2slo-rules.prometheusrule.yaml"


def generated(config: Config | None = None, scale: Scale = PRODUCTION) -> dict[str, str]:
    """The text of each file by its path in the folder of generated files."""
    rules = default_objective_rules() if config is None else config.objective_rules
    alerting = AlertingConfig() if config is None else config.alerting
    recorded = recording.groups(rules, scale)
    thresholds = replace(DEFAULT_THRESHOLDS, exporter_job=alerting.exporter_job)
    alerts = alert_groups(links(alerting.links), scale, thresholds)
    return {
        RECORDING_RULES: prometheus_text(recorded),
        ALERT_RULES: prometheus_text(alerts),
        RULE_RESOURCE: prometheus_rule_resource((*recorded, *alerts)),
        ALERTMANAGER: configuration(alerting, SloConfig() if config is None else config.slo, scale),
        SLACK_TEMPLATE: slack.template(),
    }


def alert_groups(
    to: Links, scale: Scale = PRODUCTION, thresholds: Thresholds = DEFAULT_THRESHOLDS
) -> tuple[Group, ...]:
    """All alerts, those about objectives first."""
    return (
        *burn.groups(thresholds, to, scale),
        *causes.groups(thresholds, to, scale),
        *aftermath.groups(to, scale, thresholds),
    )


def links(config: LinksConfig) -> Links:
    """The base addresses as configured."""
    return Links(
        runbook=config.runbook,
        dashboard=config.dashboard,
        report=config.report,
        prometheus=config.prometheus,
        alertmanager=config.alertmanager,
    )


def notices(config: Config | None = None) -> tuple[str, ...]:
    """What the reader of the files should know: pairs that can never fire, no channel."""
    rules: Sequence[ObjectiveRule]
    rules = default_objective_rules() if config is None else config.objective_rules
    found = burn.notices(rules)
    if config is None or not config.alerting.channels:
        channel = (
            "alerting names no channel: messages go to Slack by the webhook whose address "
            f"Alertmanager finds in {DEFAULT_WEBHOOK_FILE}"
        )
        return (*found, channel)
    return found
