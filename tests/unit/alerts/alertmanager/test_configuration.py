"""Alertmanager's configuration: content, and routes according to amtool."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from inhibitions import delivered
from promtool import needs_promtool

from mm2slo_alerts.alert_files import alert_groups
from mm2slo_alerts.alert_rules import AlertRule, Scale
from mm2slo_alerts.alertmanager_config import (
    DEFAULT_WEBHOOK_FILE,
    INHIBITIONS,
    TEMPLATES,
    configuration,
)
from mm2slo_alerts.alertmanager_variants import matches
from mm2slo_alerts.message_preview import sample_alert
from mm2slo_alerts.slack_template import message_template
from mm2slo_core.config.alerting_config import (
    AlertingConfig,
    LinksConfig,
    ObjectiveConfig,
    SlackChannel,
    SloConfig,
    Webhook,
)
from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_core.user_errors import UserError

MIRRORING = SlackChannel(name="mirroring", webhook_url_file="/run/secrets/mirroring")
PAYMENTS = SlackChannel(name="pay team", webhook_url_file="/run/secrets/pay", channel="payments")
ON_CALL = Webhook(name="on-call", url="https://calls.example/a", credentials_file="/run/secrets/t")
PULSE = Webhook(name="pulse", url="https://pulse.example/b")
FULL = AlertingConfig(slack=(MIRRORING, PAYMENTS), webhooks=(PULSE, ON_CALL), watchdog="pulse")
RULES = [rule for group in alert_groups() for rule in group.rules if isinstance(rule, AlertRule)]


def labels_of(rule: AlertRule) -> dict[str, str]:
    return {"alertname": rule.alert, **sample_alert(rule).labels, **rule.labels}


def document(config: AlertingConfig, scale: float = 1.0) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(configuration(config, SloConfig(), Scale(scale)))
    return found


def receiver(config: AlertingConfig, name: str) -> dict[str, Any]:
    [found] = [each for each in document(config)["receivers"] if each["name"] == name]
    return dict(found)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alertmanager")
    (folder / "templates").mkdir()
    (folder / TEMPLATES).write_text(message_template(AlertingConfig()), encoding="utf-8")
    path = folder / "alertmanager.yml"
    path.write_text(configuration(FULL, SloConfig()), encoding="utf-8")
    return path


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["amtool", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@needs_promtool
@pytest.mark.parametrize(
    "config",
    [
        AlertingConfig(),
        FULL,
        AlertingConfig(webhooks=(PULSE,), watchdog="pulse"),
        FULL.model_copy(
            update={
                "links": LinksConfig(
                    runbook="https://a.example/r",
                    dashboard="https://b.example",
                    report="https://c.example",
                    alertmanager="https://d.example/am",
                    splunk="https://e.example",
                )
            }
        ),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 1 / 60, 0.001])
def test_amtool_accepts_every_configuration(
    tmp_path: Path, config: AlertingConfig, scale: float
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / TEMPLATES).write_text(message_template(AlertingConfig()), encoding="utf-8")
    path = tmp_path / "alertmanager.yml"
    path.write_text(configuration(config, SloConfig(), Scale(scale)), encoding="utf-8")
    done = amtool("check-config", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 templates" in done.stdout


@needs_promtool
@pytest.mark.parametrize(
    ("rule", "channel"),
    [
        *((rule, "") for rule in RULES),
        *(
            (rule, channel)
            for rule in RULES
            for channel in ("pay team", "on-call", "forgotten")
            if rule.alert in {"MM2ErrorBudgetBurn", "MM2Watchdog"}
        ),
    ],
)
def test_each_alert_is_routed_to_expected_receiver(
    written: Path, rule: AlertRule, channel: str
) -> None:
    """Alerts of the rule set; the expected receivers are written by hand."""
    labels = {**labels_of(rule), **({"channel": channel} if channel else {})}
    if rule.alert == "MM2Watchdog":
        expected = "channel-pulse"
    elif rule.alert == "MM2SlackDeliveryFailing":
        expected = "channel-on-call"
    else:
        expected = {"pay team": "channel-pay team", "on-call": "channel-on-call"}.get(
            channel, "channel-mirroring"
        )
    done = amtool(
        "config",
        "routes",
        "test",
        f"--config.file={written}",
        f"--verify.receivers={expected}",
        *(f"{name}={value}" for name, value in labels.items()),
    )
    assert done.returncode == 0, f"{labels}: {done.stdout}{done.stderr}"


def routes(route: dict[str, Any]) -> list[dict[str, Any]]:
    below = [each for child in route.get("routes", ()) for each in routes(child)]
    return [route, *below]


OBJECTIVES = (
    ObjectiveConfig(flows=("us->*",), sli=Sli.ORDER, target=0.99, channel="on-call"),
    ObjectiveConfig(flows=("*",), sli=Sli.DATA_FRESHNESS, target=0.99, channel="on-call"),
    ObjectiveConfig(flows=("us->eu",), sli=Sli.AVAILABILITY, target=0.99, channel="pay team"),
    ObjectiveConfig(flows=("us->*",), sli=Sli.AVAILABILITY, target=0.99),
)


@needs_promtool
@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        # The first availability objective of the flow; the second one is without a channel.
        ({"alertname": "MM2FlowStopped", "flow": "us->eu", "severity": "page"}, "pay team"),
        ({"alertname": "MM2TaskFailed", "flow": "us->eu", "severity": "ticket"}, "pay team"),
        ({"alertname": "MM2FlowStopped", "flow": "us->eu2", "severity": "page"}, "mirroring"),
        # No availability objective of the flow: data freshness.
        ({"alertname": "MM2FlowStopped", "flow": "ap->us", "severity": "page"}, "on-call"),
        # An alert about an objective uses its channel.
        (
            {
                "alertname": "MM2ErrorBudgetBurn",
                "flow": "us->eu",
                "sli": "order",
                "severity": "page",
                "channel": "on-call",
            },
            "on-call",
        ),
        # An objective without a channel uses the default, whatever the causes use.
        (
            {
                "alertname": "MM2ErrorBudgetBurn",
                "flow": "us->eu",
                "sli": "latency",
                "severity": "page",
            },
            "mirroring",
        ),
        # Without a flow: the default channel.
        ({"alertname": "MM2ExporterDown", "severity": "page"}, "mirroring"),
    ],
)
def test_cause_is_routed_to_channel_of_availability(
    tmp_path: Path, labels: Mapping[str, str], expected: str
) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / TEMPLATES).write_text(message_template(AlertingConfig()), encoding="utf-8")
    path = tmp_path / "alertmanager.yml"
    slo = SloConfig(objectives=OBJECTIVES)
    path.write_text(configuration(FULL, slo), encoding="utf-8")
    wanted = [f"{name}={value}" for name, value in labels.items()]
    done = amtool("config", "routes", "test", f"--config.file={path}", *wanted)
    assert done.stdout.strip() == f"channel-{expected}", done.stderr


def test_root_route_is_ticket_of_first_channel() -> None:
    root = document(FULL)["route"]
    assert root["receiver"] == "channel-mirroring"
    assert "matchers" not in root
    assert (root["group_wait"], root["group_interval"], root["repeat_interval"]) == (
        "30s",
        "5m",
        "1d",
    )


def test_alert_without_channel_is_routed_to_slo_channel() -> None:
    found = yaml.safe_load(configuration(FULL, SloConfig(channel="pay team")))
    assert found["route"]["receiver"] == "channel-pay team"


def test_page_routes_wait_ten_seconds_and_repeat_after_four_hours() -> None:
    pages = [
        route
        for route in routes(document(FULL)["route"])
        if 'severity="page"' in route.get("matchers", ())
    ]
    assert len(pages) == 3 * (3 + 1), "each of three channels, and the default"
    for page in pages:
        assert (page["group_wait"], page["group_interval"], page["repeat_interval"]) == (
            "10s",
            "1m",
            "4h",
        )


def test_alerts_are_grouped_by_flow_cluster_or_name() -> None:
    by_matchers = {
        tuple(route.get("matchers", ())): route["group_by"]
        for route in routes(document(FULL)["route"])
        if "group_by" in route
    }
    assert by_matchers == {
        (): ["alertname"],
        ('severity="page"', 'flow!=""'): ["flow"],
        ('severity="page"', 'cluster!=""'): ["cluster"],
        ('flow!=""',): ["flow"],
        ('cluster!=""',): ["cluster"],
    }


def test_scale_shortens_every_duration() -> None:
    for whole, short in zip(
        routes(document(FULL)["route"]), routes(document(FULL, 0.01)["route"]), strict=True
    ):
        for key in ("group_wait", "group_interval", "repeat_interval"):
            if key in whole and whole[key] != "0s":
                assert seconds(short[key]) == pytest.approx(seconds(whole[key]) / 100)


def seconds(text: str) -> float:
    units = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
    parts = re.findall(r"(\d+)(ms|[dhms])", text)
    assert "".join(number + unit for number, unit in parts) == text
    return sum(int(number) * units[unit] for number, unit in parts)


def test_secrets_are_read_from_files() -> None:
    [slack] = receiver(FULL, "channel-mirroring")["slack_configs"]
    assert slack["api_url_file"] == "/run/secrets/mirroring"
    assert slack["send_resolved"] is True
    [named] = receiver(FULL, "channel-pay team")["slack_configs"]
    assert named["channel"] == "payments"
    [hook] = receiver(FULL, "channel-on-call")["webhook_configs"]
    assert hook == {
        "url": "https://calls.example/a",
        "send_resolved": True,
        "http_config": {"authorization": {"credentials_file": "/run/secrets/t"}},
    }


def test_configuration_without_channel_assumes_slack() -> None:
    [slack] = receiver(AlertingConfig(), "channel-default")["slack_configs"]
    assert slack["api_url_file"] == DEFAULT_WEBHOOK_FILE
    only_pulse = AlertingConfig(webhooks=(PULSE,), watchdog="pulse")
    assert document(only_pulse)["route"]["receiver"] == "channel-default"


def test_buttons_without_url_are_omitted() -> None:
    [slack] = receiver(FULL, "channel-mirroring")["slack_configs"]
    assert "actions" not in slack
    linked = FULL.model_copy(update={"links": LinksConfig(report="https://slo.example")})
    [slack] = receiver(linked, "channel-mirroring")["slack_configs"]
    assert [action["text"] for action in slack["actions"]] == ["SLO"]
    full = LinksConfig(
        runbook="https://r",
        dashboard="https://d",
        report="https://s",
        alertmanager="https://a",
        splunk="https://l",
    )
    [slack] = receiver(FULL.model_copy(update={"links": full}), "channel-mirroring")[
        "slack_configs"
    ]
    assert [action["text"] for action in slack["actions"]] == [
        "Runbook",
        "Dashboard",
        "SLO",
        "Logs",
        "Silence",
    ]


def test_unknown_channel_is_rejected() -> None:
    objective = ObjectiveConfig(sli=Sli.LATENCY, target=0.99, channel="paymnts")
    with pytest.raises(UserError, match="unknown channel 'paymnts'; expected one of mir"):
        configuration(FULL, SloConfig(objectives=(objective,)))
    with pytest.raises(UserError, match="unknown channel 'pulse'"):
        configuration(FULL, SloConfig(channel="pulse"))


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (FULL, "channel-on-call"),
        (AlertingConfig(slack=(MIRRORING, PAYMENTS)), "channel-pay team"),
        (AlertingConfig(slack=(MIRRORING,)), "channel-mirroring"),
        (FULL.model_copy(update={"platform": "pay team"}), "channel-pay team"),
    ],
)
def test_slack_delivery_failure_is_routed_to_platform_channel(
    config: AlertingConfig, expected: str
) -> None:
    [route] = [
        each
        for each in routes(document(config)["route"])
        if each.get("matchers") == ['alertname="MM2SlackDeliveryFailing"']
    ]
    assert route["receiver"] == expected


ROLES: tuple[dict[str, str], ...] = ({}, {"source": "us"}, {"target": "us"})


@pytest.mark.parametrize("rule", INHIBITIONS, ids=lambda rule: rule.why)
def test_inhibition_has_delivered_source_and_targets_and_none_is_both(rule: Any) -> None:
    sources = [
        labels
        for each in RULES
        for role in ROLES
        if matches(rule.source, labels := {**labels_of(each), **role})
    ]
    targets = [labels_of(each) for each in RULES if matches(rule.target, labels_of(each))]
    assert sources, "no alert of the rule set is a source"
    assert targets, "no alert of the rule set is a target"
    assert {labels["severity"] for labels in sources} == {"page"}
    assert not [labels for labels in sources if matches(rule.target, labels)]
    for name in re.findall(r"MM2\w+", str(rule.source) + str(rule.target)):
        assert any(each.alert == name for each in RULES), f"no alert {name}"


@pytest.mark.parametrize("rule", INHIBITIONS, ids=lambda rule: rule.why)
def test_inhibition_source_requires_compared_labels(rule: Any) -> None:
    """Alertmanager treats two missing labels as equal."""
    required = {each.label for each in rule.source if each.operator == "!=" and not each.value}
    assert set(rule.by) <= required


def test_loss_is_never_inhibited() -> None:
    for name in ("MM2RecordsLost", "MM2RetentionHeadroomLow", "MM2ClusterUnreachable"):
        [rule] = [each for each in RULES if each.alert == name]
        assert not [each.why for each in INHIBITIONS if matches(each.target, labels_of(rule))]


def inhibited_by(cause: str, labels: Mapping[str, str], flow: str = "us->eu") -> set[str]:
    """Alerts about *flow*, and without a flow, that *cause* inhibits."""
    source, _, target = flow.partition("->")
    firing = {"alertname": cause, "severity": "page", **labels}
    about = {"flow": flow, "source": source, "target": target}
    others = [labels_of(each) for each in RULES if each.alert != cause]
    others = [{**found, **(about if "flow" in found else {})} for found in others]
    return {found["alertname"] for found in others if delivered([firing, found]) == [firing]}


def test_stopped_flow_inhibits_its_budgets_and_groups() -> None:
    about = {"flow": "us->eu", "source": "us", "target": "eu"}
    assert inhibited_by("MM2FlowStopped", about) == {
        *("MM2ErrorBudgetBurn", "MM2ErrorBudgetExhausted"),
        *("MM2CheckpointStalled", "MM2FailoverNotReady", "MM2TaskFailed"),
    }
    assert inhibited_by("MM2FlowStopped", about, "c->d") == set()


@pytest.mark.parametrize(("role", "flow"), [("source", "us->eu"), ("target", "eu->us")])
def test_unreachable_cluster_inhibits_its_flows_except_loss(role: str, flow: str) -> None:
    cluster = {"cluster": "us", role: "us"}
    of_flows = {each.alert for each in RULES if "flow" in labels_of(each)}
    loss = {"MM2RecordsLost", "MM2RetentionHeadroomLow"}
    inhibited = inhibited_by("MM2ClusterUnreachable", cluster, flow)
    assert inhibited == of_flows - loss | {"MM2CollectionFailing"}
    other = inhibited_by("MM2ClusterUnreachable", cluster, "c->d")
    assert other == {"MM2CollectionFailing"}


def test_exporter_down_inhibits_absent_metrics() -> None:
    assert inhibited_by("MM2ExporterDown", {"job": "mm2slo"}) == {"MM2FlowMetricsAbsent"}
