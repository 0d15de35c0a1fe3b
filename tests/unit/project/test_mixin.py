"""deploy/mixin, evaluated by jsonnet: equal to the generated rules and boards."""

import json
from pathlib import Path
from typing import Any

import _jsonnet
import yaml

from mm2slo_alerts.alert_files import ALERT_RULES, RECORDING_RULES, generated
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig
from mm2slo_dashboards.dashboard_files import DASHBOARD_FOLDER, generate_files

MIXIN = Path(__file__).parents[3] / "deploy" / "mixin" / "mixin.libsonnet"


def evaluate(config: str = "{}") -> Any:
    fields = "prometheusRules", "prometheusAlerts", "grafanaDashboards"
    shown = ", ".join(f"{name}: mixin.{name}" for name in fields)
    program = f"local mixin = (import '{MIXIN}') {{ _config+:: {config} }}; {{ {shown} }}"
    return json.loads(_jsonnet.evaluate_snippet("mixin", program))


def test_mixin_is_equal_to_the_generated_files() -> None:
    found, rules = evaluate(), generated()
    assert found["prometheusRules"] == yaml.safe_load(rules[RECORDING_RULES])
    assert found["prometheusAlerts"] == yaml.safe_load(rules[ALERT_RULES])
    assert found["grafanaDashboards"] == {
        Path(name).name: json.loads(text)
        for name, text in generate_files().items()
        if name.startswith(DASHBOARD_FOLDER)
    }


def test_configured_mixin_is_equal_to_rules_of_the_same_configuration() -> None:
    url = "https://git.example/runbooks/"
    alerting = AlertingConfig(labels={"team": "a"}, links=LinksConfig(runbook=url))
    found = evaluate(f"{{ alertLabels: {{ team: 'a' }}, runbookURL: '{url}' }}")
    expected = yaml.safe_load(generated(alerting=alerting)[ALERT_RULES])
    assert found["prometheusAlerts"] == expected
    assert found["prometheusRules"] == evaluate()["prometheusRules"]
