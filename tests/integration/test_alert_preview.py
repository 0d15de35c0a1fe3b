"""Every alert is delivered by Alertmanager as `mm2slo alerts preview` shows it."""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from fake_slack import FakeSlackWebhook, check_message
from monitoring import EXTERNAL_URL, Alertmanager, alert, alertmanager

from mm2slo_alerts.alert_files import alert_groups
from mm2slo_alerts.alert_rules import AlertRule, Scale
from mm2slo_alerts.alertmanager_config import configuration
from mm2slo_alerts.message_preview import blocks
from mm2slo_cli.alerts_preview import AlertState, render_alert, render_message
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig, SlackChannel, SloConfig
from mm2slo_core.topology import Flow
from mm2slo_lab.lab_topology import LabError
from mm2slo_lab.managed_process import wait_for

pytestmark = pytest.mark.xdist_group("monitoring")

LINKS: Final = LinksConfig(
    runbook="https://docs.example/runbooks",
    dashboard="https://grafana.example",
    report="https://slo.example",
    alertmanager=EXTERNAL_URL,
)
RULES: Final = [
    rule
    for group in alert_groups(LINKS)
    for rule in group.rules
    if isinstance(rule, AlertRule) and rule.labels["severity"] != "none"
]
NOW: Final = datetime(2026, 1, 5, 14, 14, 7, tzinfo=UTC)
SINCE: Final = NOW - timedelta(minutes=12)


@dataclass(frozen=True)
class Delivery:
    """Alertmanager with a fake Slack."""

    config: AlertingConfig
    manager: Alertmanager
    slack: FakeSlackWebhook

    def until(self, payload: object) -> list[object]:
        """All messages as soon as *payload* is among them, or after a minute.

        Messages of other tests may be repeated in between.
        """
        with suppress(LabError):
            wait_for(lambda: payload in self._payloads(), "the message", poll=0.02)
        return self._payloads()

    def _payloads(self) -> list[object]:
        return [each.payload for each in self.slack.messages]


@pytest.fixture(scope="module")
def delivery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivery]:
    folder = tmp_path_factory.mktemp("preview")
    with ExitStack() as stack:
        slack = stack.enter_context(FakeSlackWebhook(burst=100))
        secret = folder / "slack"
        secret.write_text(slack.url, encoding="utf-8")
        channel = SlackChannel(name="all", webhook_url_file=str(secret))
        config = AlertingConfig(links=LINKS, slack=(channel,))
        text = configuration(config, SloConfig(), Scale(0.001))
        # Without inhibition, because alerts without a flow would inhibit each other here.
        text = text[: text.index("inhibit_rules:")] + text[text.index("receivers:") :]
        yield Delivery(config, stack.enter_context(alertmanager(folder, text, config)), slack)
        assert slack.refusals == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.alert)
def test_delivered_alert_equals_preview(delivery: Delivery, rule: AlertRule) -> None:
    # A separate flow, so that no other alert is in its group.
    flow = Flow("us", f"eu{RULES.index(rule)}")
    known = render_alert(rule, flow)
    delivery.manager.post(alert(known.labels, known.annotations, since=SINCE))
    previewed = render_message(known, delivery.config, AlertState.FIRING, NOW)
    assert previewed in delivery.until(previewed)
    assert "<error expanding template" not in str(previewed)
    check_message(blocks(previewed))


def test_delivered_resolved_message_equals_preview(delivery: Delivery) -> None:
    [rule] = [each for each in RULES if each.alert == "MM2FlowStopped"]
    flow = Flow("ap", "us")
    known = render_alert(rule, flow)
    delivery.manager.post(alert(known.labels, known.annotations, since=SINCE))
    firing = render_message(known, delivery.config, AlertState.FIRING, NOW)
    assert firing in delivery.until(firing)
    delivery.manager.post(alert(known.labels, known.annotations, since=SINCE, until=NOW))
    resolved = render_message(known, delivery.config, AlertState.RESOLVED, NOW)
    assert resolved in delivery.until(resolved)
