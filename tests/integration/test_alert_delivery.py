"""Messages that Alertmanager delivers with the generated configuration: text and receiver.

Alerts are posted as Prometheus posts them. Durations are 1/400 of the production values.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from fake_slack import FakeSlackWebhook
from monitoring import Alertmanager, WebhookReceiver, alert, alertmanager

from mm2slo_alerts.alertmanager import configuration
from mm2slo_alerts.rule_model import Scale
from mm2slo_core.config.alerting_config import AlertingConfig, LinksConfig, SlackChannel, Webhook
from mm2slo_core.config.slo_config import SloConfig
from mm2slo_lab.condition_wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.xdist_group("monitoring")

SCALE: Final = Scale(0.0025)
PAGE_WAIT: Final = SCALE(10.0)
PAGE_INTERVAL: Final = SCALE(120.0)
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
    "impact": "Records written to us reach eu late, or not at all.",
    "budget": "61% of the error budget is left, exhausted in about 23 h at this rate",
    "action": "Check whether MirrorMaker 2 is replicating: mm2_flow_state, mm2_task_state.",
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

        wait_for(lambda: len(found()) >= count, f"message {count} about {part}", 60.0, 0.02)
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
        manager = stack.enter_context(alertmanager(folder, text))
        yield Delivery(manager, slack, other, on_call, pulse)
        assert [slack.refusals, on_call.refused, pulse.refused] == [[], [], []]


def burn(flow: str, pair: str = "Fast", **more: str) -> dict[str, str]:
    """Labels of an error budget burn alert."""
    source, _, target = flow.partition("->")
    page = pair in {"Fast", "Steady"}
    return {
        "alertname": f"MM2ErrorBudgetBurn{pair}",
        "severity": "page" if page else "ticket",
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
    return json.loads(re.sub(r"to \d\d:\d\d UTC", "to 12:00 UTC", text))


def test_page_and_resolved_message_text(delivery: Delivery) -> None:
    labels = burn("us->eu")
    delivery.manager.fire(labels, texts(labels), since=START)
    [fired] = delivery.wait_messages("us-&gt;eu · latency")
    delivery.manager.resolve(labels, texts(labels), since=START, until=END)
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
                    budget="n/a",
                ),
            )
            for labels in all_labels
        )
    )
    [fired] = delivery.wait_messages("flow ap-&gt;us")
    same_as_golden("ticket-of-seven-topics", at_noon(fired))
    assert "and 2 more" in fired["attachments"][0]["text"]


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
    assert fired["attachments"][0]["text"].split("\n")[-3:] == [
        f"• {shown}: {labels['sli']} cannot be judged" for labels in unseen
    ]
    assert [title for title in delivery.slack.titles() if shown in title] == [
        fired["attachments"][0]["title"]
    ]


def test_no_coverage_ticket_after_outage(delivery: Delivery) -> None:
    memory = {"alertname": "MM2RecentlyPaged", "severity": "none", "of": "MM2ClusterUnreachable"}
    memory |= {"within": "1h10m", "cluster": "off"}
    delivery.manager.post(alert({**memory, "source": "off"}), alert({**memory, "target": "off"}))
    unseen = [
        cause("MM2SLOCoverageLow", flow, "ticket", sli="latency", tier="60s")
        for flow in ("off->i", "i->off", "i->j")
    ]
    delivery.manager.post(*(alert(labels, texts(labels)) for labels in unseen))
    delivery.wait_messages("i-&gt;j")
    assert [title for title in delivery.slack.titles() if "off" in title] == []


def test_cluster_down_is_one_page_until_all_resolved(delivery: Delivery) -> None:
    """Active-active: the cluster is source of one flow and target of the other."""
    flows = ("down->up", "up->down")
    roles = [{"source": "down"}, {"target": "down"}]
    recently = [
        {
            "alertname": "MM2ClusterRecentlyUnreachable",
            "severity": "none",
            "cluster": "down",
            "within": within,
            **role,
        }
        for role in roles
        for within in ("10m", "45m")
    ]
    unreachable = [
        {"alertname": "MM2ClusterUnreachable", "severity": "page", "cluster": "down", **role}
        for role in roles
    ]
    consequences = [
        labels
        for flow in flows
        for labels in (
            burn(flow),
            burn(flow, "Steady"),
            burn(flow, "Slow"),
            burn(flow, sli="data_freshness", tier="all"),
            cause("MM2FlowStopped", flow),
            cause("MM2PartitionStalled", flow, topic="orders"),
            cause("MM2SLOCoverageLow", flow, "ticket", sli="latency", tier="60s"),
        )
    ]
    collecting = {"alertname": "MM2CollectionFailing", "severity": "ticket", "cluster": "down"}
    annotations = {"summary": "Cluster down does not answer.", **TEXTS}
    inhibited = [
        (labels, texts(labels, summary="a consequence of down"))
        for labels in (*consequences, collecting)
    ]
    delivery.manager.post(*(alert(labels) for labels in recently))
    delivery.manager.post(*(alert(*each) for each in inhibited))
    delivery.manager.post(*(alert(labels, annotations) for labels in unreachable))
    [fired] = delivery.wait_messages("Cluster down")
    # The cluster is back; the consequences fire until they leave the windows.
    now = datetime.now(UTC)
    delivery.manager.post(*(alert(labels, annotations, until=now) for labels in unreachable))
    [_, resolved] = delivery.wait_messages("Cluster down", 2)
    delivery.assert_no_message("a consequence of down")
    now = datetime.now(UTC)
    delivery.manager.post(*(alert(*each, until=now) for each in inhibited))
    delivery.manager.post(*(alert(labels, until=now) for labels in recently))
    delivery.assert_no_message("a consequence of down")
    assert [title for title in delivery.slack.titles() if "down-" in title] == []
    same_as_golden("cluster-firing", at_noon(fired))
    same_as_golden("cluster-resolved", at_noon(resolved))


def test_flow_stopped_after_outage_pages(delivery: Delivery) -> None:
    recently = {"alertname": "MM2ClusterRecentlyUnreachable", "severity": "none", "cluster": "m"}
    delivery.manager.fire({**recently, "within": "45m", "source": "m"})
    burns = burn("m->n")
    delivery.manager.fire(burns, texts(burns, summary="m->n burns"))
    stopped = cause("MM2FlowStopped", "m->n")
    delivery.manager.fire(stopped, texts(stopped, summary="Flow m->n has stopped."))
    delivery.wait_messages("Flow m-&gt;n has stopped")
    assert [title for title in delivery.slack.titles() if "m-&gt;n ·" in title] == []


def test_records_lost_page_while_cluster_is_down(delivery: Delivery) -> None:
    recently = {"alertname": "MM2ClusterRecentlyUnreachable", "severity": "none", "cluster": "c"}
    recently["within"] = "10m"
    delivery.manager.fire({**recently, "target": "c"})
    lost = cause("MM2RecordsLost", "b->c", topic="orders")
    delivery.manager.fire(lost, texts(lost, summary="Flow b->c has lost records."))
    delivery.wait_messages("Flow b-&gt;c has lost")


def test_outage_of_other_cluster_inhibits_nothing(delivery: Delivery) -> None:
    recently = {
        "alertname": "MM2ClusterRecentlyUnreachable",
        "severity": "none",
        "cluster": "other",
        "within": "10m",
    }
    delivery.manager.fire({**recently, "source": "other"})
    delivery.manager.fire({**recently, "target": "other"})
    labels = burn("k->l")
    delivery.manager.fire(labels, texts(labels))
    delivery.wait_messages("k-&gt;l")


def test_fast_burn_alert_inhibits_slower_pairs(delivery: Delivery) -> None:
    fast = burn("f->g")
    delivery.manager.fire(fast, texts(fast, summary="f->g burns fast"))
    delivery.wait_messages("f-&gt;g")
    for pair in ("Steady", "Slow", "Creeping"):
        delivery.manager.fire(burn("f->g", pair), texts(fast, summary=f"f->g burns {pair}"))
    exhausted = {**burn("f->g", "Slow"), "alertname": "MM2ErrorBudgetExhausted"}
    delivery.manager.fire(exhausted, texts(exhausted))
    time.sleep(2 * PAGE_INTERVAL + PAGE_WAIT)
    assert len(delivery.wait_messages("f-&gt;g")) == 1
    state = {
        each["labels"]["alertname"]: each["status"]["state"]
        for each in delivery.manager.alerts()
        if each["labels"].get("flow") == "f->g"
    }
    assert state == {
        "MM2ErrorBudgetBurnFast": "active",
        "MM2ErrorBudgetBurnSteady": "suppressed",
        "MM2ErrorBudgetBurnSlow": "suppressed",
        "MM2ErrorBudgetBurnCreeping": "suppressed",
        "MM2ErrorBudgetExhausted": "suppressed",
    }


def test_resolved_stop_does_not_page_for_burnt_budget(delivery: Delivery) -> None:
    stopped = cause("MM2FlowStopped", "m->n")
    annotations = texts(stopped, summary="Flow m->n has stopped.")
    memory = cause("MM2RecentlyPaged", "m->n", "none", of="MM2FlowStopped")
    delivery.manager.fire(stopped, annotations, since=START)
    delivery.wait_messages("Flow m-&gt;n has stopped")
    delivery.manager.fire({**memory, "within": "45m"})
    delivery.manager.fire({**memory, "within": "5m"})
    delivery.manager.fire(burn("m->n"), texts(stopped, summary="m->n burns"))
    stalled = cause("MM2PartitionStalled", "m->n", topic="orders")
    delivery.manager.fire(stalled, texts(stalled, summary="m->n is stalled"))
    delivery.manager.resolve(stopped, annotations, since=START, until=END)
    delivery.wait_messages("Flow m-&gt;n has stopped", 2)
    delivery.assert_no_message("m-&gt;n · latency")
    delivery.assert_no_message("m-&gt;n is stalled")


def test_resolved_stop_makes_no_ticket_for_long_windows(delivery: Delivery) -> None:
    """Tickets of the stopped flow are inhibited for as long as their windows."""
    memories = [
        cause("MM2RecentlyPaged", flow, "none", of=of, within=within)
        for flow, of in (("stop1->copy1", "MM2FlowStopped"), ("stop2->copy2", "MM2CatchingUp"))
        for within in ("2h15m", "6h15m")
    ]
    outage = {"alertname": "MM2RecentlyPaged", "severity": "none", "of": "MM2ClusterUnreachable"}
    memories += [
        {**outage, "within": within, "cluster": "stop4", role: "stop4"}
        for role in ("source", "target")
        for within in ("2h15m", "6h15m")
    ]
    delivery.manager.post(*(alert(labels) for labels in memories))
    tickets = [
        labels
        for flow in ("stop1->copy1", "stop2->copy2", "stop3->copy3", "stop4->copy4", "copy4->stop4")
        for labels in (
            burn(flow, "Slow", tier="10s"),
            burn(flow, "Creeping", sli="checkpoint_freshness", tier="all"),
            {**burn(flow, "Slow"), "alertname": "MM2ErrorBudgetExhausted"},
        )
    ]
    delivery.manager.post(*(alert(labels, texts(labels)) for labels in tickets))
    delivery.wait_messages("stop3-&gt;copy3", 3)
    assert [title for title in delivery.slack.titles() if re.search("stop[124]", title)] == []


def test_flow_catching_up_does_not_page_for_freshness(delivery: Delivery) -> None:
    memory = cause("MM2RecentlyPaged", "late1->copy4", "none", of="MM2CatchingUp", within="20m")
    delivery.manager.fire(memory)
    behind = [
        burn(flow, sli="data_freshness", tier="default")
        for flow in ("late1->copy4", "late2->copy5")
    ]
    unready = cause("MM2FailoverNotReady", "late1->copy4", "ticket", group="billing")
    delivery.manager.post(*(alert(labels, texts(labels)) for labels in (*behind, unready)))
    delivery.wait_messages("late2-&gt;copy5")
    delivery.assert_no_message("late1-&gt;copy4")


def test_steady_pair_does_not_page_after_fast_pair(delivery: Delivery) -> None:
    fast, steady = burn("o->p"), burn("o->p", "Steady")
    memory = {**fast, "alertname": "MM2RecentlyPaged", "severity": "none"}
    memory |= {"of": "MM2ErrorBudgetBurnFast", "within": "45m"}
    delivery.manager.fire(memory)
    delivery.manager.fire(fast, texts(fast), since=START)
    delivery.wait_messages("FIRING page · o-&gt;p")
    delivery.manager.fire(steady, texts(steady))
    delivery.manager.resolve(fast, texts(fast), since=START, until=END)
    delivery.wait_messages("RESOLVED page · o-&gt;p")
    time.sleep(2 * PAGE_INTERVAL)
    assert len(delivery.wait_messages("FIRING page · o-&gt;p")) == 1


def test_each_channel_gets_its_own_alerts(delivery: Delivery) -> None:
    labels = burn("q->r", channel="payments")
    delivery.manager.fire(labels, texts(labels))
    delivery.wait_messages("q-&gt;r", receiver=delivery.other)
    assert [title for title in delivery.slack.titles() if "q-&gt;r" in title] == []


def test_webhook_gets_groups_with_token(delivery: Delivery) -> None:
    labels = burn("s->t", channel="on-call")
    delivery.manager.fire(labels, texts(labels), since=START)
    flow = _of_flow(delivery.on_call, "s->t")
    wait_for(lambda: len(flow()) == 1, "a message at the webhook", 60.0, 0.02)
    delivery.manager.resolve(labels, texts(labels), since=START, until=END)
    wait_for(lambda: len(flow()) == 2, "the resolved message", 60.0, 0.02)
    fired, resolved = flow()
    assert (fired["status"], resolved["status"]) == ("firing", "resolved")
    assert fired["groupLabels"] == {"flow": "s->t", "sli": "latency", "tier": "60s"}
    assert fired["receiver"] == "channel-on-call"
    [alert] = fired["alerts"]
    assert alert["labels"] == labels
    assert alert["annotations"] == texts(labels)


def test_watchdog_repeats_to_its_receiver(delivery: Delivery) -> None:
    delivery.manager.fire({"alertname": "MM2Watchdog", "severity": "none"}, {"summary": "alive"})
    wait_for(lambda: len(delivery.pulse.messages) >= 3, "three heartbeats", 20.0, 0.05)
    assert all("Watchdog" not in title for title in delivery.slack.titles())


def test_failing_slack_is_reported_to_other_receivers(delivery: Delivery) -> None:
    labels = {"alertname": "MM2SlackDeliveryFailing", "severity": "ticket", "integration": "slack"}
    delivery.manager.fire(labels, {"summary": "Alertmanager cannot deliver messages to Slack."})
    wait_for(
        lambda: any(
            each["groupLabels"] == {"alertname": "MM2SlackDeliveryFailing"}
            for each in delivery.on_call.messages
        ),
        "the webhook's message",
        20.0,
    )


def test_refused_message_is_sent_again(delivery: Delivery) -> None:
    """5xx is retried at once; 429, which Alertmanager 0.25 does not retry, at the next interval."""
    delivery.slack.fail(status=500, body="rollup_error", times=2)
    first = burn("u->v")
    delivery.manager.fire(first, texts(first))
    delivery.wait_messages("u-&gt;v")
    assert [refusal.status for refusal in delivery.slack.refusals] == [500, 500]
    delivery.slack.refusals.clear()

    pair = [burn(flow, channel="payments") for flow in ("w->x", "y->z")]
    start = len(delivery.other.refusals)
    for labels in pair:
        delivery.manager.fire(labels, texts(labels))
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
    annotations = dict.fromkeys(("summary", "impact", "budget", "action"), f"{name} {text}")
    delivery.manager.fire(labels, texts(labels, **annotations))
    [message] = delivery.wait_messages(f"FIRING page · {name} ")
    [attachment] = message["attachments"]
    assert "<" not in attachment["text"].replace("&lt;", "")
    assert "`" not in attachment["text"] + attachment["title"]
    assert attachment["text"].count("\n") < 5


def test_silence_command_of_message_silences_its_alerts(delivery: Delivery) -> None:
    labels = burn('it\'s->"h"')
    delivery.manager.fire(labels, texts(labels))
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
