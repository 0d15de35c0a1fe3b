"""Alertmanager's configuration: content, and routes according to amtool."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from inhibitions import delivered, matches

from mm2slo_alerts import recent_alert
from mm2slo_alerts.alertmanager import TEMPLATES, configuration
from mm2slo_alerts.alertmanager.inhibition import INHIBITIONS
from mm2slo_alerts.alertmanager.receivers import DEFAULT_WEBHOOK_FILE
from mm2slo_alerts.burn.pair_alerts import ALERTS as BURNS
from mm2slo_alerts.output_files import alert_groups
from mm2slo_alerts.preview import sample
from mm2slo_alerts.recent_alert import RECENT_ALERTS
from mm2slo_alerts.rule_model import AlertRule, Links, Scale
from mm2slo_alerts.slack import template
from mm2slo_alerts.thresholds import DEFAULT_THRESHOLDS
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig, SlackChannel, Webhook
from mm2slo_core.config.slo_config import STEP, ObjectiveConfig, SloConfig
from mm2slo_core.objectives import WINDOW_PAIRS
from mm2slo_core.promql import duration
from mm2slo_core.sli_counters import Sli
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


MIRRORING = SlackChannel(name="mirroring", webhook_url_file="/run/secrets/mirroring")
PAYMENTS = SlackChannel(name="pay team", webhook_url_file="/run/secrets/pay", channel="payments")
ON_CALL = Webhook(name="on-call", url="https://calls.example/a", credentials_file="/run/secrets/t")
PULSE = Webhook(name="pulse", url="https://pulse.example/b")
FULL = AlertingConfig(slack=(MIRRORING, PAYMENTS), webhooks=(PULSE, ON_CALL), watchdog="pulse")
RULES = [
    rule for group in alert_groups(Links()) for rule in group.rules if isinstance(rule, AlertRule)
]


_EVERY = {"flow": "us->eu", "source": "us", "target": "eu", "sli": "latency", "tier": "60s"}


def labels_of(rule: AlertRule) -> dict[str, str]:
    found = {"alertname": rule.alert, **sample(rule).labels, **rule.labels}
    for recent in RECENT_ALERTS:
        if rule.alert == recent_alert.ALERT and rule.labels["of"] == recent.of:
            found |= {label: _EVERY.get(label, "us") for label in recent.by}
    return found


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
    (folder / TEMPLATES).write_text(template(), encoding="utf-8")
    path = folder / "alertmanager.yml"
    path.write_text(configuration(FULL, SloConfig()), encoding="utf-8")
    return path


def amtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("amtool") is None:
        pytest.skip("amtool is not installed: run make prometheus")
    return subprocess.run(
        ["amtool", *arguments], capture_output=True, text=True, check=False, timeout=30
    )


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
    (tmp_path / TEMPLATES).write_text(template(), encoding="utf-8")
    path = tmp_path / "alertmanager.yml"
    path.write_text(configuration(config, SloConfig(), Scale(scale)), encoding="utf-8")
    done = amtool("check-config", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 templates" in done.stdout


@pytest.mark.parametrize(
    ("rule", "channel"),
    [
        *((rule, "") for rule in RULES),
        *(
            (rule, channel)
            for rule in RULES
            for channel in ("pay team", "on-call", "forgotten")
            if rule.alert in {"MM2ErrorBudgetBurnFast", "MM2ErrorBudgetBurnSlow", "MM2Watchdog"}
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
    elif rule.labels["severity"] == "none":
        expected = "null"
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


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        # Channel of the availability objective of this flow; the wildcard names none.
        ({"alertname": "MM2FlowStopped", "flow": "us->eu", "severity": "page"}, "pay team"),
        ({"alertname": "MM2TaskFailed", "flow": "us->eu", "severity": "ticket"}, "pay team"),
        # No availability objective names a channel: data freshness does.
        ({"alertname": "MM2FlowStopped", "flow": "ap->us", "severity": "page"}, "on-call"),
        ({"alertname": "MM2FlowStopped", "flow": "us->eu2", "severity": "page"}, "on-call"),
        # An alert about an objective uses its channel.
        (
            {
                "alertname": "MM2ErrorBudgetBurnFast",
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
                "alertname": "MM2ErrorBudgetBurnFast",
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
    (tmp_path / TEMPLATES).write_text(template(), encoding="utf-8")
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
    assert len(pages) == 2 * (3 + 1), "each of three channels, and the default"
    for page in pages:
        assert (page["group_wait"], page["group_interval"], page["repeat_interval"]) == (
            "10s",
            "2m",
            "4h",
        )


def test_routes_group_by_objective_or_cause() -> None:
    by_matchers = {
        tuple(route["matchers"]): route["group_by"]
        for route in routes(document(FULL)["route"])
        if "group_by" in route and "matchers" in route
    }
    one = ('sli!=""', 'alertname!~"MM2SLOCoverageLow|MM2ErrorBudgetExhausted"')
    assert by_matchers['severity="page"', *one] == ["flow", "sli", "tier"]
    assert by_matchers['severity="page"',] == ["alertname", "flow", "cluster"]
    assert by_matchers[one] == ["flow", "sli", "tier"]
    assert by_matchers['alertname="MM2Watchdog"',] == ["alertname"]


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


@pytest.mark.parametrize("rule", INHIBITIONS, ids=lambda rule: rule.why)
def test_inhibition_has_sources_and_targets_and_none_is_both(rule: Any) -> None:
    sources = [
        labels
        for each in RULES
        for role in ({}, {"source": "us"}, {"target": "us"})
        if matches(rule.source, labels := {**labels_of(each), **role})
    ]
    targets = [labels_of(each) for each in RULES if matches(rule.target, labels_of(each))]
    assert sources, "no alert of the rule set is a source"
    assert targets, "no alert of the rule set is a target"
    assert not [labels for labels in sources if matches(rule.target, labels)]
    for pattern in re.findall(r"MM2\w+", str(rule.source) + str(rule.target)):
        assert any(each.alert.startswith(pattern) for each in RULES), f"no alert {pattern}"


@pytest.mark.parametrize("rule", INHIBITIONS, ids=lambda rule: rule.why)
def test_inhibition_source_requires_compared_labels(rule: Any) -> None:
    """Alertmanager treats two missing labels as equal."""
    required = {each.label for each in rule.source if each.operator == "!=" and not each.value}
    assert set(rule.by) <= required


def test_loss_is_never_inhibited() -> None:
    for name in ("MM2RecordsLost", "MM2RetentionHeadroomLow", "MM2ClusterUnreachable"):
        [rule] = [each for each in RULES if each.alert == name]
        assert not [each.why for each in INHIBITIONS if matches(each.target, labels_of(rule))]


def test_recent_alerts_outlast_their_windows() -> None:
    """A page needs its window, for and keep_firing_for; a ticket two steps; coverage an hour."""
    of_pair = {each.alert: each for each in RULES if each.alert.startswith("MM2ErrorBudgetBurn")}
    after = (
        *recent_alert.AFTER_BURN.values(),
        recent_alert.AFTER_STOP,
        recent_alert.AFTER_CATCHING_UP,
        recent_alert.AFTER_OUTAGE,
    )
    for recent_alerts in after:
        for name, recent in recent_alerts.items():
            [pair] = [each for each in WINDOW_PAIRS if each.name == name]
            alert = of_pair[BURNS[name]]
            after_window = alert.hold + alert.keep if alert.keep else 2 * STEP
            assert recent.within > pair.short + after_window
    covered = 3_600.0 + STEP + recent_alert.INTERVAL
    for recent in (
        recent_alert.UNSEEN_BY_EXPORTER,
        recent_alert.UNSEEN_IN_OUTAGE,
        recent_alert.UNSEEN_BY_ABSENCE,
    ):
        assert recent.within > covered


_GROUPS = {"MM2CheckpointStalled", "MM2FailoverNotReady"}
_PAGING = {BURNS["fast"], BURNS["steady"]}
_TICKETS = {BURNS["slow"], "MM2ErrorBudgetExhausted"}
_CREEPING = {BURNS["creeping"]}
_UNSEEN = {"MM2SLOCoverageLow"}
INHIBITED = {
    ("MM2FlowStopped", "5m"): {
        *("MM2PartitionStalled", "MM2ConnectorFailed", "MM2TaskFailed", "MM2TransactionStuck")
    },
    ("MM2FlowStopped", "45m"): _PAGING | _GROUPS,
    ("MM2FlowStopped", "2h15m"): _TICKETS,
    ("MM2FlowStopped", "6h15m"): _CREEPING,
    ("MM2CatchingUp", "20m"): _PAGING | _GROUPS,
    ("MM2CatchingUp", "2h15m"): _TICKETS,
    ("MM2CatchingUp", "6h15m"): _CREEPING,
    ("MM2ClusterUnreachable", "1h10m"): _UNSEEN,
    ("MM2ClusterUnreachable", "2h15m"): _TICKETS,
    ("MM2ClusterUnreachable", "6h15m"): _CREEPING,
    (BURNS["fast"], "45m"): {BURNS["steady"]},
    (BURNS["fast"], "2h15m"): _TICKETS,
    (BURNS["fast"], "6h15m"): _CREEPING,
    (BURNS["steady"], "2h15m"): _TICKETS,
    (BURNS["steady"], "6h15m"): _CREEPING,
    (BURNS["slow"], "6h15m"): _CREEPING,
    ("MM2ExporterDown", "10m"): _UNSEEN | {"MM2FlowMetricsAbsent", "MM2CollectionFailing"},
    ("MM2ExporterDown", "1h10m"): _UNSEEN,
    ("MM2FlowMetricsAbsent", "1h10m"): _UNSEEN,
}
"""Alerts that each recent alert inhibits, written by hand, for an indicator that a stop burns."""


def inhibited_by(recent: recent_alert.RecentAlert, **about: str) -> set[str]:
    """Delivered alerts that *recent* of us->eu inhibits; *about* changes their labels."""
    known = {label: _EVERY.get(label, "us") for label in recent.by}
    firing = {"alertname": recent_alert.ALERT, "severity": "none", **recent.labels, **known}
    people = [each for each in RULES if each.labels["severity"] != "none"]
    return {each.alert for each in people if not delivered([firing, {**labels_of(each), **about}])}


def test_each_recent_alert_inhibits_expected_alerts() -> None:
    assert {
        (each.of, duration(each.within)): inhibited_by(each) for each in RECENT_ALERTS
    } == INHIBITED


def inhibited_after_outage(within: str, **about: str) -> set[str]:
    """Delivered alerts that an outage of the flow's source inhibits, *within* a time."""
    recently = {"alertname": "MM2ClusterRecentlyUnreachable", "severity": "none", "cluster": "us"}
    recently |= {"source": "us", "within": within}
    people = [each for each in RULES if each.labels["severity"] != "none"]
    return {
        each.alert
        for each in people
        if not delivered(
            [recently, {**labels_of(each), **(about if "flow" in labels_of(each) else {})}]
        )
    }


def test_flow_that_does_not_resume_after_outage_alerts() -> None:
    """Budget alerts are inhibited for longer than alerts about stopped flows."""
    looks_back = {*BURNS.values(), "MM2ErrorBudgetExhausted"} | _UNSEEN | _GROUPS
    assert inhibited_after_outage("45m") - {"MM2CollectionFailing"} == looks_back
    of_flows = {each.alert for each in RULES if "flow" in labels_of(each)}
    kept = {"MM2RecordsLost", "MM2RetentionHeadroomLow", "MM2CatchingUp", "MM2RecentlyPaged"}
    at_once = inhibited_after_outage("10m")
    assert at_once - {"MM2CollectionFailing"} == of_flows - kept
    assert {"MM2FlowStopped", "MM2TaskFailed", "MM2PartitionStalled"} <= at_once
    for within in ("10m", "45m"):
        assert inhibited_after_outage(within, flow="c->d", source="c", target="d") <= {
            "MM2CollectionFailing"
        }


def test_recent_alert_of_one_flow_inhibits_no_other_flow() -> None:
    for recent in RECENT_ALERTS:
        if recent.by:
            assert inhibited_by(recent, flow="c->d", source="c", target="d") == set()


def test_indicators_that_a_stop_does_not_burn_are_not_inhibited() -> None:
    for recent in RECENT_ALERTS:
        if recent.by and "sli" not in recent.by:
            for sli in ("completeness", "uniqueness", "order", "affinity"):
                burns = {*BURNS.values(), "MM2ErrorBudgetExhausted"}
                assert not burns & inhibited_by(recent, sli=sli, tier="all")


def test_each_pair_inhibits_only_slower_pairs() -> None:
    order = [pair.name for pair in WINDOW_PAIRS]
    for faster, recent_alerts in recent_alert.AFTER_BURN.items():
        assert list(recent_alerts) == order[order.index(faster) + 1 :]


def test_trend_is_known_before_inhibition_after_stop_ends() -> None:
    trend = DEFAULT_THRESHOLDS.catching_up_trend
    assert recent_alert.AFTER_STOP["steady"].within > trend
    assert DEFAULT_THRESHOLDS.outage_in_windows > trend
    assert DEFAULT_THRESHOLDS.catching_up_after > DEFAULT_THRESHOLDS.catching_up_ahead
