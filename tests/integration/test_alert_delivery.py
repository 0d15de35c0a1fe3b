"""Messages that Alertmanager delivers with the generated configuration: text and receiver.

Alerts are posted as Prometheus posts them. Durations are 1/400 of the production values.
"""

import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from fake_slack import FakeSlackWebhook
from monitoring import Alertmanager, WebhookReceiver, alert, alertmanager

from mm2slo_alerts.alert_rules import Scale
from mm2slo_alerts.alertmanager_config import configuration
from mm2slo_core.config.alerting_config import (
    AlertingConfig,
    LinksConfig,
    SlackChannel,
    SloConfig,
    Webhook,
)
from mm2slo_lab.managed_process import wait_for

pytestmark = pytest.mark.xdist_group("monitoring")

SCALE: Final = Scale(0.0025)
PAGE_WAIT: Final = SCALE(10.0)
PAGE_INTERVAL: Final = SCALE(60.0)
GOLDEN: Final = Path(__file__).with_name("golden") / "slack"
START: Final = datetime(2026, 1, 5, 14, 2, 7, tzinfo=UTC)
END: Final = datetime(2026, 1, 5, 14, 14, 50, tzinfo=UTC)
LINKS: Final = LinksConfig(
    runbook="https://docs.example/runbooks",
    dashboard="https://grafana.example",
    report="https://slo.example",
    alertmanager="https://alertmanager.example",
)
TEXTS: Final = {
    "impact": "61% of the error budget is left.",
    "action": "Query mm2_flow_state and mm2_task_state of the flow, then follow the runbook for "
    "this SLI.",
}


@dataclass(frozen=True)
class Delivery:
    """Alertmanager and its receivers."""

    manager: Alertmanager
    slack: FakeSlackWebhook
    other: FakeSlackWebhook
    on_call: WebhookReceiver
    pulse: WebhookReceiver

    def wait_messages(
        self, part: str, count: int = 1, receiver: FakeSlackWebhook | None = None
    ) -> list[Any]:
        """Wait for *count* messages with *part* in their title, and return them."""
        slack = receiver or self.slack

        def found() -> list[Any]:
            return [each.payload for each in slack.messages if part in each.title]

        wait_for(lambda: len(found()) >= count, f"message {count} about {part}", poll=0.02)
        assert len(found()) == count
        return found()

    def assert_no_message(self, part: str) -> None:
        """Check that no message has *part* in its title after two more group intervals."""
        time.sleep(2 * PAGE_INTERVAL + PAGE_WAIT)
        assert [title for title in self.slack.titles() if part in title] == []


@pytest.fixture(scope="module")
def delivery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Delivery]:
    folder = tmp_path_factory.mktemp("alertmanager")
    with ExitStack() as stack:
        slack = stack.enter_context(FakeSlackWebhook(burst=100))
        other = stack.enter_context(FakeSlackWebhook(burst=1, rate=0.5))
        on_call = stack.enter_context(WebhookReceiver(token="a-token"))
        pulse = stack.enter_context(WebhookReceiver())
        files = {"slack": slack.url, "other": other.url, "token": "a-token"}
        for name, secret in files.items():
            (folder / name).write_text(secret + "\n", encoding="utf-8")
        config = AlertingConfig(
            links=LINKS,
            slack=(
                SlackChannel(name="mirroring", webhook_url_file=str(folder / "slack")),
                SlackChannel(name="payments", webhook_url_file=str(folder / "other")),
            ),
            webhooks=(
                Webhook(name="on-call", url=on_call.url, credentials_file=str(folder / "token")),
                Webhook(name="pulse", url=pulse.url),
            ),
            watchdog="pulse",
        )
        text = configuration(config, SloConfig(), SCALE)
        assert not any(secret in text for secret in files.values())
        manager = stack.enter_context(alertmanager(folder, text, config))
        yield Delivery(manager, slack, other, on_call, pulse)
        assert [slack.refusals, on_call.refused, pulse.refused] == [[], [], []]


def burn(flow: str, window: str = "1h", **more: str) -> dict[str, str]:
    """Labels of an error budget burn alert."""
    source, _, target = flow.partition("->")
    return {
        "alertname": "MM2ErrorBudgetBurn",
        "severity": "page" if window in {"1h", "6h"} else "ticket",
        "window": window,
        "flow": flow,
        "source": source,
        "target": target,
        "sli": "latency",
        "tier": "60s",
        "owner": "streaming",
        **more,
    }


def cause(name: str, flow: str, severity: str = "page", **more: str) -> dict[str, str]:
    """Labels of an alert about a flow."""
    source, _, target = flow.partition("->")
    found = {"alertname": name, "severity": severity, "flow": flow}
    return {**found, "source": source, "target": target, **more}


def texts(labels: dict[str, str], **more: str) -> dict[str, str]:
    """Annotations as in the generated rules."""
    name = labels["alertname"]
    return {
        "summary": f"{labels.get('flow', '')}: latency 60s is burning error budget at 18x "
        "the sustainable rate (1h and 5m windows)",
        **TEXTS,
        "runbook_url": f"https://docs.example/runbooks/{name}.md",
        "dashboard_url": "https://grafana.example/d/mm2slo-flow?var-flow=us-%3Eeu&from=now-6h&to=now",
        "report_url": "https://slo.example/slo?flow=us-%3Eeu",
        **more,
    }


def same_as_golden(name: str, payload: object) -> None:
    """Compare with the golden file; MM2SLO_WRITE_GOLDEN=1 writes it."""
    path = GOLDEN / f"{name}.json"
    text = json.dumps(payload, indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("MM2SLO_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def at_noon(payload: object) -> Any:
    """Replace each time of day by noon: alerts must start now to be grouped."""
    text = re.sub(r"\d{1,2} [A-Z][a-z]{2} \d\d:\d\d", "1 Jan 12:00", json.dumps(payload))
    text = re.sub(r"(?<=\*Lasted\* )\d+s", "1s", text)
    return json.loads(re.sub(r"to \d\d:\d\d UTC", "to 12:00 UTC", text))


def test_page_and_resolved_message_text(delivery: Delivery) -> None:
    labels = burn("us->eu")
    delivery.manager.post(alert(labels, texts(labels), since=START))
    [fired] = delivery.wait_messages("us-&gt;eu · latency")
    delivery.manager.post(alert(labels, texts(labels), since=START, until=END))
    [_, resolved] = delivery.wait_messages("us-&gt;eu · latency", 2)
    same_as_golden("page-firing", fired)
    same_as_golden("page-resolved", resolved)


def test_ticket_for_several_topics_is_one_message(delivery: Delivery) -> None:
    all_labels = [
        cause("MM2TopicMissing", "ap->us", "ticket", topic=f"orders-{number}")
        for number in range(7)
    ]
    delivery.manager.post(
        *(
            alert(
                labels,
                texts(
                    labels,
                    summary=f"Topic {labels['topic']} of flow ap->us has no copy on us.",
                ),
            )
            for labels in all_labels
        )
    )
    [fired] = delivery.wait_messages("flow ap-&gt;us")
    same_as_golden("ticket-of-seven-topics", at_noon(fired))
    assert "and 1 more" in fired["attachments"][0]["text"]


@pytest.mark.parametrize(
    ("name", "flow"), [("MM2SLOCoverageLow", "g->h"), ("MM2ErrorBudgetExhausted", "gs->hs")]
)
def test_ticket_for_several_slis_is_one_message(delivery: Delivery, name: str, flow: str) -> None:
    unseen = [
        cause(name, flow, "ticket", sli=sli, tier="all")
        for sli in ("availability", "completeness", "data_freshness")
    ]
    shown = flow.replace(">", "&gt;")
    delivery.manager.post(
        *(
            alert(labels, texts(labels, summary=f"{flow}: {labels['sli']} cannot be judged"))
            for labels in unseen
        )
    )
    [fired] = delivery.wait_messages(f"{shown} · availability (and 2 more)")
    assert fired["attachments"][0]["text"].split("\n")[-2:] == [
        f"• {shown}: {labels['sli']} cannot be judged" for labels in unseen[1:]
    ]
    assert [title for title in delivery.slack.titles() if shown in title] == [
        fired["attachments"][0]["title"]
    ]


def flow_effects(flow: str) -> list[dict[str, str]]:
    """Labels of alerts about a flow that does not replicate."""
    return [
        burn(flow),
        burn(flow, "6h"),
        burn(flow, "1d"),
        burn(flow, sli="data_freshness", tier="all"),
        cause("MM2FlowStopped", flow),
        cause("MM2PartitionStalled", flow, topic="orders"),
        cause("MM2FailoverNotReady", flow, "ticket", group="billing"),
        cause("MM2SLOCoverageLow", flow, "ticket", sli="latency", tier="60s"),
    ]


def unreachable(cluster: str) -> list[dict[str, str]]:
    """Labels of the alerts of both roles of a cluster."""
    named = {"alertname": "MM2ClusterUnreachable", "severity": "page", "cluster": cluster}
    return [{**named, role: cluster} for role in ("source", "target")]


def test_cluster_down_is_one_page_until_all_resolved(delivery: Delivery) -> None:
    """Active-active: the cluster is source of one flow and target of the other."""
    consequences = [*flow_effects("down->up"), *flow_effects("up->down")]
    collecting = {"alertname": "MM2CollectionFailing", "severity": "ticket", "cluster": "down"}
    annotations = {"summary": "Cluster down does not answer.", **TEXTS}
    inhibited = [
        (labels, texts(labels, summary="a consequence of down"))
        for labels in (*consequences, collecting)
    ]
    # The cause fires first, and outlasts its consequences (keep_firing_for).
    delivery.manager.post(*(alert(labels, annotations) for labels in unreachable("down")))
    delivery.manager.post(*(alert(*each) for each in inhibited))
    [fired] = delivery.wait_messages("Cluster down")
    delivery.assert_no_message("a consequence of down")
    now = datetime.now(UTC)
    delivery.manager.post(*(alert(*each, until=now) for each in inhibited))
    delivery.manager.post(
        *(alert(labels, annotations, until=now) for labels in unreachable("down"))
    )
    [_, resolved] = delivery.wait_messages("Cluster down", 2)
    delivery.assert_no_message("a consequence of down")
    assert [title for title in delivery.slack.titles() if "down-" in title] == []
    same_as_golden("cluster-firing", at_noon(fired))
    same_as_golden("cluster-resolved", at_noon(resolved))


@pytest.mark.parametrize("clusters", [("hub",), ("hub1", "hub2")])
def test_twenty_flows_of_unreachable_clusters_are_one_conversation_per_cluster(
    delivery: Delivery, clusters: tuple[str, ...]
) -> None:
    flows = [f"{clusters[number % len(clusters)]}->spoke{number}" for number in range(20)]
    causes = [labels for cluster in clusters for labels in unreachable(cluster)]
    effects = [labels for flow in flows for labels in flow_effects(flow)]
    notes = [{"summary": f"Cluster {labels['cluster']} does not answer."} for labels in causes]
    delivery.manager.post(*map(alert, causes, notes))
    delivery.manager.post(*(alert(labels, texts(labels)) for labels in effects))
    for cluster in clusters:
        delivery.wait_messages(f"Cluster {cluster} does")
    delivery.assert_no_message("spoke")
    now = datetime.now(UTC)
    delivery.manager.post(*(alert(labels, texts(labels), until=now) for labels in effects))
    delivery.manager.post(
        *(alert(each, note, until=now) for each, note in zip(causes, notes, strict=True))
    )
    for cluster in clusters:
        delivery.wait_messages(f"Cluster {cluster} does", 2)
    delivery.assert_no_message("spoke")


def test_records_lost_page_while_cluster_is_down(delivery: Delivery) -> None:
    delivery.manager.post(*(alert(labels, {"summary": "c"}) for labels in unreachable("c")))
    lost = cause("MM2RecordsLost", "b->c", topic="orders")
    delivery.manager.post(alert(lost, texts(lost, summary="Flow b->c has lost records.")))
    delivery.wait_messages("Flow b-&gt;c has lost")


def test_outage_of_other_cluster_inhibits_nothing(delivery: Delivery) -> None:
    delivery.manager.post(*(alert(each, {"summary": "o"}) for each in unreachable("other")))
    labels = burn("k->l")
    delivery.manager.post(alert(labels, texts(labels)))
    delivery.wait_messages("k-&gt;l")


def test_stop_of_30_minutes_is_one_page_and_one_resolution(delivery: Delivery) -> None:
    """The alerts of tests/unit/alerts/test_stop_conversation.py, in their order."""
    stopped = cause("MM2FlowStopped", "m->n")
    notes = texts(stopped, summary="Flow m->n has stopped.")
    delivery.manager.post(alert(stopped, notes, since=START))
    delivery.wait_messages("Flow m-&gt;n has stopped")
    burns = [
        burn("m->n", window, sli=sli)
        for sli in ("availability", "data_freshness")
        for window in ("1h", "6h")
    ]
    delivery.manager.post(*(alert(labels, texts(labels)) for labels in burns))
    delivery.assert_no_message("m-&gt;n ·")
    now = datetime.now(UTC)
    delivery.manager.post(*(alert(labels, texts(labels), until=now) for labels in burns))
    delivery.manager.post(alert(stopped, notes, since=START, until=END))
    delivery.wait_messages("Flow m-&gt;n has stopped", 2)
    delivery.assert_no_message("m-&gt;n ·")
    assert len([title for title in delivery.slack.titles() if "m-&gt;n" in title]) == 2


def test_pages_of_a_flow_are_one_message_that_leads_with_the_stop(delivery: Delivery) -> None:
    failed = cause("MM2ConnectorFailed", "o->p", connector="MirrorSourceConnector")
    stopped = cause("MM2FlowStopped", "o->p")
    delivery.manager.post(
        alert(failed, texts(failed, summary="Connector of o->p has failed.")),
        alert(stopped, texts(stopped, summary="Flow o->p has stopped.")),
        alert(burn("o->p"), texts(burn("o->p"))),
    )
    [fired] = delivery.wait_messages("o-&gt;p")
    [attachment] = fired["attachments"]
    assert attachment["title"] == "🔥 FIRING page · Flow o-&gt;p has stopped. (and 1 more)"
    assert attachment["text"].endswith("\n• Connector of o-&gt;p has failed.")


def test_tickets_of_a_flow_are_one_message(delivery: Delivery) -> None:
    tickets = [burn("ta->tb", "1d"), burn("ta->tb", "3d"), burn("ta->tb", "1d", sli="order")]
    tickets.append(cause("MM2TopicMissing", "ta->tb", "ticket", topic="orders"))
    delivery.manager.post(*(alert(each, texts(each, summary="ta->tb x")) for each in tickets))
    [fired] = delivery.wait_messages("ta-&gt;tb")
    assert "FIRING ticket" in fired["attachments"][0]["title"]


def test_each_channel_gets_its_own_alerts(delivery: Delivery) -> None:
    labels = burn("q->r", channel="payments")
    delivery.manager.post(alert(labels, texts(labels)))
    delivery.wait_messages("q-&gt;r", receiver=delivery.other)
    assert [title for title in delivery.slack.titles() if "q-&gt;r" in title] == []


def test_webhook_gets_groups_with_token(delivery: Delivery) -> None:
    labels = burn("s->t", channel="on-call")
    delivery.manager.post(alert(labels, texts(labels), since=START))
    flow = _of_flow(delivery.on_call, "s->t")
    wait_for(lambda: len(flow()) == 1, "a message at the webhook", poll=0.02)
    delivery.manager.post(alert(labels, texts(labels), since=START, until=END))
    wait_for(lambda: len(flow()) == 2, "the resolved message", poll=0.02)
    fired, resolved = flow()
    assert (fired["status"], resolved["status"]) == ("firing", "resolved")
    assert fired["groupLabels"] == {"flow": "s->t"}
    assert fired["receiver"] == "channel-on-call"
    [posted] = fired["alerts"]
    assert posted["labels"] == labels
    assert posted["annotations"] == texts(labels)


def test_watchdog_repeats_to_its_receiver(delivery: Delivery) -> None:
    delivery.manager.post(
        alert({"alertname": "MM2Watchdog", "severity": "none"}, {"summary": "alive"})
    )
    wait_for(lambda: len(delivery.pulse.messages) >= 3, "three heartbeats", poll=0.05)
    assert all("Watchdog" not in title for title in delivery.slack.titles())


def test_failing_slack_is_reported_to_other_receivers(delivery: Delivery) -> None:
    labels = {"alertname": "MM2SlackDeliveryFailing", "severity": "ticket", "integration": "slack"}
    delivery.manager.post(
        alert(labels, {"summary": "Alertmanager cannot deliver messages to Slack."})
    )
    wait_for(
        lambda: any(
            each["groupLabels"] == {"alertname": "MM2SlackDeliveryFailing"}
            for each in delivery.on_call.messages
        ),
        "the webhook's message",
    )


def test_refused_message_is_sent_again(delivery: Delivery) -> None:
    """5xx is retried at once; 429, which Alertmanager 0.25 does not retry, at the next interval."""
    delivery.slack.fail(status=500, body="rollup_error", times=2)
    first = burn("u->v")
    delivery.manager.post(alert(first, texts(first)))
    delivery.wait_messages("u-&gt;v")
    assert [refusal.status for refusal in delivery.slack.refusals] == [500, 500]
    delivery.slack.refusals.clear()

    pair = [burn(flow, channel="payments") for flow in ("w->x", "y->z")]
    start = len(delivery.other.refusals)
    for labels in pair:
        delivery.manager.post(alert(labels, texts(labels)))
    delivery.wait_messages("w-&gt;x", receiver=delivery.other)
    delivery.wait_messages("y-&gt;z", receiver=delivery.other)
    refused = delivery.other.refusals[start:]
    assert {refusal.status for refusal in refused} == {429}
    assert all(int(refusal.reason) >= 1 for refusal in refused), "Retry-After in seconds"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("markup", "<!channel> & <https://evil.example|click> `code` <@U1>"),
        ("lines", "one\ntwo\r\n\tthree"),
        ("long", "x" * 4_000),
        ("go", "{{ .Labels.SortedPairs }} {{ template `none` }}"),
        ("escapes", "&amp; < > \\ \" ' \u2028 ü 漢字"),
    ],
)
def test_message_with_special_characters_is_accepted(
    delivery: Delivery, name: str, text: str
) -> None:
    """The fake Slack refuses unescaped markup, and text that Slack folds or truncates."""
    labels = cause(f"MM2Hostile{name.title()}", f"{name}->h", topic=text, owner=text)
    annotations = dict.fromkeys(("summary", "impact", "action"), f"{name} {text}")
    delivery.manager.post(alert(labels, texts(labels, **annotations)))
    [message] = delivery.wait_messages(f"FIRING page · {name} ")
    [attachment] = message["attachments"]
    assert "<" not in attachment["text"].replace("&lt;", "")
    assert "`" not in attachment["text"] + attachment["title"]
    assert attachment["text"].count("\n") < 5


def test_silence_command_of_message_silences_its_alerts(delivery: Delivery) -> None:
    labels = burn('it\'s->"h"')
    delivery.manager.post(alert(labels, texts(labels)))
    [message] = delivery.wait_messages("it's-&gt;")
    footer = message["attachments"][0]["footer"]
    command = shlex.split(footer.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    assert command[:3] == ["amtool", "silence", "add"]
    address = next(part for part in command if part.startswith("--alertmanager.url="))
    assert address == "--alertmanager.url=http://alertmanager.example"
    delivery.manager.amtool(*(part for part in command[1:] if part != address), "--author=on-call")
    state = {
        each["labels"]["flow"]: bool(each["status"]["silencedBy"])
        for each in delivery.manager.alerts()
        if each["labels"]["alertname"] == labels["alertname"] and each["labels"]["sli"] == "latency"
    }
    assert [flow for flow, silenced in state.items() if silenced] == [labels["flow"]]


def _of_flow(receiver: WebhookReceiver, flow: str) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [each for each in receiver.messages if each["groupLabels"].get("flow") == flow]
