"""Formats, labels and severities of the generated files."""

import re
from collections.abc import Iterable

import pytest
import yaml

from mm2slo_alerts.alert_files import DEFAULT_FORMATS, GeneratedFormat, generated
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.user_errors import UserError

BASE = """\
clusters: {us: {bootstrap_servers: "us:9092"}, eu: {bootstrap_servers: "eu:9092"}}
flows: [{flow: us->eu}]
alerting:
  slack: [{name: pay, webhook_url_file: /run/secrets/slack, channel: "#pay"}]
"""


def config(more: str = "") -> Config:
    return load_config(BASE + more)


@pytest.mark.parametrize(
    ("formats", "names"),
    [
        ((GeneratedFormat.PROMETHEUS,), {"mm2slo-recording.rules.yml", "mm2slo-alerts.rules.yml"}),
        ((GeneratedFormat.PROMETHEUSRULE,), {"mm2slo-rules.prometheusrule.yaml"}),
        ((GeneratedFormat.ALERTMANAGER,), {"alertmanager.yml", "mm2slo.tmpl"}),
        ((GeneratedFormat.FRAGMENT,), {"mm2slo-fragment.yml", "mm2slo.tmpl"}),
        ((GeneratedFormat.ALERTMANAGERCONFIG,), {"mm2slo.alertmanagerconfig.yaml"}),
    ],
)
def test_each_format_has_its_files(formats: tuple[GeneratedFormat, ...], names: set[str]) -> None:
    files = generated(config("  namespace: monitoring\n"), formats=formats)
    assert {name.rpartition("/")[2] for name in files} == names


def test_labels_severities_and_namespace_are_on_every_alert() -> None:
    files = generated(
        config(
            "  labels: {team: streaming}\n"
            "  severities: {page: critical, ticket: warning}\n"
            "  namespace: monitoring\n"
            "  prometheusrule: {labels: {release: kps}}\n"
        )
    )
    rule = yaml.safe_load(files["prometheus/mm2slo-rules.prometheusrule.yaml"])
    assert rule["metadata"]["namespace"] == "monitoring"
    assert rule["metadata"]["labels"]["release"] == "kps"
    alerts = [r for g in rule["spec"]["groups"] for r in g["rules"] if "alert" in r]
    assert {alert["labels"]["severity"] for alert in alerts} == {"critical", "warning", "none"}
    assert all(alert["labels"]["team"] == "streaming" for alert in alerts)
    assert all(alert["labels"]["namespace"] == "monitoring" for alert in alerts)
    recorded = [r for g in rule["spec"]["groups"] for r in g["rules"] if "record" in r]
    assert not [each for each in recorded if "team" in each.get("labels", {})]
    assert all(each["labels"]["namespace"] == "monitoring" for each in recorded)
    routes = files["alertmanager/alertmanager.yml"]
    assert 'severity="critical"' in routes
    assert 'severity="page"' not in routes
    template = files["alertmanager/templates/mm2slo.tmpl"]
    assert 'eq $severity "critical"' in template


def test_outage_of_cluster_takes_two_polls_at_least() -> None:
    read = load_config(
        BASE.replace("us->eu}", "us->eu, slice: 1m}") + "exporter: {poll_interval: 1m}"
    )
    files = generated(read)
    rules = files["prometheus/mm2slo-alerts.rules.yml"]
    answered = re.findall(
        r"last_success_timestamp_seconds\{[^}]*\}(?: <|\[\d+m\]\) > time\(\) -) (\d+)", rules
    )
    assert sorted(set(answered)) == ["120", "180"]


def test_labels_that_expressions_of_alerts_group_by_are_reserved() -> None:
    alerts = generated(config())["prometheus/mm2slo-alerts.rules.yml"]
    grouped = {
        label for each in re.findall(r"by \(([^)]+)\)", alerts) for label in each.split(", ")
    }
    assert {"stage", "loop", "rule_group"} < grouped
    for label in sorted(grouped):
        with pytest.raises(UserError, match="is a label of the alerts themselves"):
            config(f"  labels: {{{label}: x}}\n")


def test_namespace_selects_series_of_annotations_and_alerts_of_routes() -> None:
    files = generated(
        config("  namespace: kafka\n"), formats=(*DEFAULT_FORMATS, GeneratedFormat.FRAGMENT)
    )
    alerts = yaml.safe_load(files["prometheus/mm2slo-alerts.rules.yml"])
    texts = [text for g in alerts["groups"] for r in g["rules"] for text in _annotations(r)]
    queries = [query for text in texts for query in re.findall(r'printf "(.*?[^\\])"', text)]
    reading = [query for query in queries if "mm2_" in query]
    assert len(reading) > 5
    for query in reading:
        assert query.count("mm2_") == query.count(r"namespace=\"kafka\"")
    ours = 'namespace="kafka"'
    for name in ("alertmanager/alertmanager.yml", "alertmanager/mm2slo-fragment.yml"):
        found = yaml.safe_load(files[name])
        routes = [found["route"], *found["route"]["routes"]]
        assert all(ours in route["matchers"] for route in routes[name.endswith("manager.yml") :])
        assert all(route["group_by"][-1] == "namespace" for route in routes if "group_by" in route)
        assert all("namespace" in rule["equal"] for rule in found["inhibit_rules"])


def _annotations(rule: dict[str, dict[str, str]]) -> Iterable[str]:
    return rule.get("annotations", {}).values()


def test_defaults_have_no_namespace_and_no_extra_labels() -> None:
    assert generated(config()).keys() == generated(config(), formats=DEFAULT_FORMATS).keys()
    rules = generated(config())["prometheus/mm2slo-rules.prometheusrule.yaml"]
    assert "namespace" not in rules


def test_receiver_is_passed_through_with_secret_in_file() -> None:
    files = generated(
        config(
            "  receivers: [{name: pd, pagerduty_configs: [{routing_key_file: /run/secrets/pd, "
            "severity: critical}]}]\n"
        )
    )
    receivers = yaml.safe_load(files["alertmanager/alertmanager.yml"])["receivers"]
    assert receivers[-1] == {
        "name": "channel-pd",
        "pagerduty_configs": [{"routing_key_file": "/run/secrets/pd", "severity": "critical"}],
    }
    selector = config(
        "  receivers: [{name: pd, pagerduty_configs: [{routing_key: {name: a, key: b}}]}]\n"
    )
    with pytest.raises(UserError, match="'pd' has routing_key in a Kubernetes Secret"):
        generated(selector)
