"""A real Alertmanager with the generated configuration: which message reaches whom, word by word.

Alerts are posted as Prometheus posts them. Every duration is a four-hundredth of production's.
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
class Stage:
    """Alertmanager and all that it tells."""

    manager: Alertmanager
    slack: FakeSlackWebhook
    other: FakeSlackWebhook
    on_call: WebhookReceiver
    pulse: WebhookReceiver

    def told(
        self, part: str, count: int = 1, receiver: FakeSlackWebhook | None = None
    ) -> list[Any]:
        """The messages with *part* in their title, once there are *count*."""
        slack = receiver or self.slack

        def found() -> list[Any]:
            return [each.payload for each in slack.messages if part in each.title]

        wait_for(lambda: len(found()) >= count, f"message {count} about {part}", 60.0, 0.02)
        assert len(found()) == count
        return found()

    def never(self, part: str) -> None:
        """No message with *part* in its title, within two more rounds of its group."""
        time.sleep(2 * PAGE_INTERVAL + PAGE_WAIT)
        assert [title for title in self.slack.titles() if part in title] == []


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
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
        yield Stage(manager, slack, other, on_call, pulse)
        assert [slack.refusals, on_call.refused, pulse.refused] == [[], [], []]


def burn(flow: str, pair: str = "Fast", **more: str) -> dict[str, str]:
    """The labels of a budget that burns."""
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
    """The labels of an alert about a flow."""
    source, _, target = flow.partition("->")
    found = {"alertname": name, "severity": severity, "flow": flow}
    return {**found, "source": source, "target": target, **more}


def texts(labels: dict[str, str], **more: str) -> dict[str, str]:
    """Annotations as the generated rules have them."""
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
    """Compare with the file; MM2SLO_WRITE_GOLDEN=1 writes it instead, for a person to read."""
    path = GOLDEN / f"{name}.json"
    text = json.dumps(payload, indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("MM2SLO_WRITE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def at_noon(payload: object) -> Any:
    """The same with noon for every time of day: alerts that start now are grouped, old ones not."""
    text = re.sub(r"\d{1,2} [A-Z][a-z]{2} \d\d:\d\d", "1 Jan 12:00", json.dumps(payload))
    return json.loads(re.sub(r"to \d\d:\d\d UTC", "to 12:00 UTC", text))


def test_a_page_and_its_end_are_told_word_by_word(stage: Stage) -> None:
    labels = burn("us->eu")
    stage.manager.fire(labels, texts(labels), since=START)
    [fired] = stage.told("us-&gt;eu · latency")
    stage.manager.resolve(labels, texts(labels), since=START, until=END)
    [_, resolved] = stage.told("us-&gt;eu · latency", 2)
    same_as_golden("page-firing", fired)
    same_as_golden("page-resolved", resolved)


def test_a_ticket_about_several_topics_is_one_message(stage: Stage) -> None:
    all_labels = [
        cause("MM2TopicMissing", "ap->us", "ticket", topic=f"orders-{number}")
        for number in range(7)
    ]
    stage.manager.post(
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
    [fired] = stage.told("flow ap-&gt;us")
    same_as_golden("ticket-of-seven-topics", at_noon(fired))
    assert "and 2 more" in fired["attachments"][0]["text"]


@pytest.mark.parametrize(
    ("name", "flow"), [("MM2SLOCoverageLow", "g->h"), ("MM2ErrorBudgetExhausted", "gs->hs")]
)
def test_what_concerns_several_indicators_at_once_is_one_ticket(
    stage: Stage, name: str, flow: str
) -> None:
    unseen = [
        cause(name, flow, "ticket", sli=sli, tier="all")
        for sli in ("availability", "completeness", "data_freshness")
    ]
    shown = flow.replace(">", "&gt;")
    stage.manager.post(
        *(
            alert(labels, texts(labels, summary=f"{flow}: {labels['sli']} cannot be judged"))
            for labels in unseen
        )
    )
    [fired] = stage.told(f"{shown} · availability (and 2 more)")
    assert fired["attachments"][0]["text"].split("\n")[-3:] == [
        f"• {shown}: {labels['sli']} cannot be judged" for labels in unseen
    ]
    assert [title for title in stage.slack.titles() if shown in title] == [
        fired["attachments"][0]["title"]
    ]


def test_what_was_not_seen_makes_no_ticket_after_the_outage(stage: Stage) -> None:
    memory = {"alertname": "MM2RecentlyPaged", "severity": "none", "of": "MM2ClusterUnreachable"}
    memory |= {"within": "1h10m", "cluster": "off"}
    stage.manager.post(alert({**memory, "source": "off"}), alert({**memory, "target": "off"}))
    unseen = [
        cause("MM2SLOCoverageLow", flow, "ticket", sli="latency", tier="60s")
        for flow in ("off->i", "i->off", "i->j")
    ]
    stage.manager.post(*(alert(labels, texts(labels)) for labels in unseen))
    stage.told("i-&gt;j")
    assert [title for title in stage.slack.titles() if "off" in title] == []


def test_a_cluster_that_is_down_is_one_page_until_all_is_resolved(stage: Stage) -> None:
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
    traces = [
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
    words = {"summary": "Cluster down does not answer.", **TEXTS}
    told = [(labels, texts(labels, summary="a trace of down")) for labels in (*traces, collecting)]
    stage.manager.post(*(alert(labels) for labels in recently))
    stage.manager.post(*(alert(*each) for each in told))
    stage.manager.post(*(alert(labels, words) for labels in unreachable))
    [fired] = stage.told("Cluster down")
    # The cluster is back; what it caused burns on within the windows.
    now = datetime.now(UTC)
    stage.manager.post(*(alert(labels, words, until=now) for labels in unreachable))
    [_, resolved] = stage.told("Cluster down", 2)
    stage.never("a trace of down")
    now = datetime.now(UTC)
    stage.manager.post(*(alert(*each, until=now) for each in told))
    stage.manager.post(*(alert(labels, until=now) for labels in recently))
    stage.never("a trace of down")
    assert [title for title in stage.slack.titles() if "down-" in title] == []
    same_as_golden("cluster-firing", at_noon(fired))
    same_as_golden("cluster-resolved", at_noon(resolved))


def test_a_flow_that_does_not_come_back_after_an_outage_is_told(stage: Stage) -> None:
    recently = {"alertname": "MM2ClusterRecentlyUnreachable", "severity": "none", "cluster": "m"}
    stage.manager.fire({**recently, "within": "45m", "source": "m"})
    burns = burn("m->n")
    stage.manager.fire(burns, texts(burns, summary="m->n burns"))
    stopped = cause("MM2FlowStopped", "m->n")
    stage.manager.fire(stopped, texts(stopped, summary="Flow m->n has stopped."))
    stage.told("Flow m-&gt;n has stopped")
    assert [title for title in stage.slack.titles() if "m-&gt;n ·" in title] == []


def test_what_is_lost_is_told_while_a_cluster_is_down(stage: Stage) -> None:
    recently = {"alertname": "MM2ClusterRecentlyUnreachable", "severity": "none", "cluster": "c"}
    recently["within"] = "10m"
    stage.manager.fire({**recently, "target": "c"})
    lost = cause("MM2RecordsLost", "b->c", topic="orders")
    stage.manager.fire(lost, texts(lost, summary="Flow b->c has lost records."))
    stage.told("Flow b-&gt;c has lost")


def test_an_outage_of_another_cluster_silences_nothing(stage: Stage) -> None:
    recently = {
        "alertname": "MM2ClusterRecentlyUnreachable",
        "severity": "none",
        "cluster": "other",
        "within": "10m",
    }
    stage.manager.fire({**recently, "source": "other"})
    stage.manager.fire({**recently, "target": "other"})
    labels = burn("k->l")
    stage.manager.fire(labels, texts(labels))
    stage.told("k-&gt;l")


def test_the_fast_pair_speaks_for_the_slower_ones(stage: Stage) -> None:
    fast = burn("f->g")
    stage.manager.fire(fast, texts(fast, summary="f->g burns fast"))
    stage.told("f-&gt;g")
    for pair in ("Steady", "Slow", "Creeping"):
        stage.manager.fire(burn("f->g", pair), texts(fast, summary=f"f->g burns {pair}"))
    exhausted = {**burn("f->g", "Slow"), "alertname": "MM2ErrorBudgetExhausted"}
    stage.manager.fire(exhausted, texts(exhausted))
    time.sleep(2 * PAGE_INTERVAL + PAGE_WAIT)
    assert len(stage.told("f-&gt;g")) == 1
    state = {
        each["labels"]["alertname"]: each["status"]["state"]
        for each in stage.manager.alerts()
        if each["labels"].get("flow") == "f->g"
    }
    assert state == {
        "MM2ErrorBudgetBurnFast": "active",
        "MM2ErrorBudgetBurnSteady": "suppressed",
        "MM2ErrorBudgetBurnSlow": "suppressed",
        "MM2ErrorBudgetBurnCreeping": "suppressed",
        "MM2ErrorBudgetExhausted": "suppressed",
    }


def test_a_stop_that_is_over_does_not_page_for_its_burnt_budget(stage: Stage) -> None:
    stopped = cause("MM2FlowStopped", "m->n")
    words = texts(stopped, summary="Flow m->n has stopped.")
    memory = cause("MM2RecentlyPaged", "m->n", "none", of="MM2FlowStopped")
    stage.manager.fire(stopped, words, since=START)
    stage.told("Flow m-&gt;n has stopped")
    stage.manager.fire({**memory, "within": "45m"})
    stage.manager.fire({**memory, "within": "5m"})
    stage.manager.fire(burn("m->n"), texts(stopped, summary="m->n burns"))
    stalled = cause("MM2PartitionStalled", "m->n", topic="orders")
    stage.manager.fire(stalled, texts(stalled, summary="m->n stands still"))
    stage.manager.resolve(stopped, words, since=START, until=END)
    stage.told("Flow m-&gt;n has stopped", 2)
    stage.never("m-&gt;n · latency")
    stage.never("m-&gt;n stands still")


def test_what_a_stop_left_in_the_windows_makes_no_ticket(stage: Stage) -> None:
    """Of the flow that stopped, for as long as its tickets' windows look back."""
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
    stage.manager.post(*(alert(labels) for labels in memories))
    tickets = [
        labels
        for flow in ("stop1->copy1", "stop2->copy2", "stop3->copy3", "stop4->copy4", "copy4->stop4")
        for labels in (
            burn(flow, "Slow", tier="10s"),
            burn(flow, "Creeping", sli="checkpoint_freshness", tier="all"),
            {**burn(flow, "Slow"), "alertname": "MM2ErrorBudgetExhausted"},
        )
    ]
    stage.manager.post(*(alert(labels, texts(labels)) for labels in tickets))
    stage.told("stop3-&gt;copy3", 3)
    assert [title for title in stage.slack.titles() if re.search("stop[124]", title)] == []


def test_a_flow_that_catches_up_does_not_page_for_its_old_data(stage: Stage) -> None:
    memory = cause("MM2RecentlyPaged", "late1->copy4", "none", of="MM2CatchingUp", within="20m")
    stage.manager.fire(memory)
    behind = [
        burn(flow, sli="data_freshness", tier="default")
        for flow in ("late1->copy4", "late2->copy5")
    ]
    unready = cause("MM2FailoverNotReady", "late1->copy4", "ticket", group="billing")
    stage.manager.post(*(alert(labels, texts(labels)) for labels in (*behind, unready)))
    stage.told("late2-&gt;copy5")
    stage.never("late1-&gt;copy4")


def test_the_steady_pair_does_not_page_for_what_the_fast_one_told(stage: Stage) -> None:
    fast, steady = burn("o->p"), burn("o->p", "Steady")
    memory = {**fast, "alertname": "MM2RecentlyPaged", "severity": "none"}
    memory |= {"of": "MM2ErrorBudgetBurnFast", "within": "45m"}
    stage.manager.fire(memory)
    stage.manager.fire(fast, texts(fast), since=START)
    stage.told("FIRING page · o-&gt;p")
    stage.manager.fire(steady, texts(steady))
    stage.manager.resolve(fast, texts(fast), since=START, until=END)
    stage.told("RESOLVED page · o-&gt;p")
    time.sleep(2 * PAGE_INTERVAL)
    assert len(stage.told("FIRING page · o-&gt;p")) == 1


def test_each_channel_gets_its_own(stage: Stage) -> None:
    labels = burn("q->r", channel="payments")
    stage.manager.fire(labels, texts(labels))
    stage.told("q-&gt;r", receiver=stage.other)
    assert [title for title in stage.slack.titles() if "q-&gt;r" in title] == []


def test_a_webhook_gets_the_same_groups_with_its_token(stage: Stage) -> None:
    labels = burn("s->t", channel="on-call")
    stage.manager.fire(labels, texts(labels), since=START)
    flow = _of_flow(stage.on_call, "s->t")
    wait_for(lambda: len(flow()) == 1, "a message at the webhook", 60.0, 0.02)
    stage.manager.resolve(labels, texts(labels), since=START, until=END)
    wait_for(lambda: len(flow()) == 2, "its end", 60.0, 0.02)
    fired, resolved = flow()
    assert (fired["status"], resolved["status"]) == ("firing", "resolved")
    assert fired["groupLabels"] == {"flow": "s->t", "sli": "latency", "tier": "60s"}
    assert fired["receiver"] == "channel-on-call"
    [alert] = fired["alerts"]
    assert alert["labels"] == labels
    assert alert["annotations"] == texts(labels)


def test_the_watchdog_goes_to_its_own_receiver_again_and_again(stage: Stage) -> None:
    stage.manager.fire({"alertname": "MM2Watchdog", "severity": "none"}, {"summary": "alive"})
    wait_for(lambda: len(stage.pulse.messages) >= 3, "three heartbeats", 20.0, 0.05)
    assert all("Watchdog" not in title for title in stage.slack.titles())


def test_that_slack_is_deaf_is_told_elsewhere(stage: Stage) -> None:
    labels = {"alertname": "MM2SlackDeliveryFailing", "severity": "ticket", "integration": "slack"}
    stage.manager.fire(labels, {"summary": "Alertmanager cannot deliver messages to Slack."})
    wait_for(
        lambda: any(
            each["groupLabels"] == {"alertname": "MM2SlackDeliveryFailing"}
            for each in stage.on_call.messages
        ),
        "the webhook's message",
        20.0,
    )


def test_a_refused_message_is_sent_again(stage: Stage) -> None:
    """5xx at once; 429, which 0.25 takes for an end, in the group's next round."""
    stage.slack.fail(status=500, body="rollup_error", times=2)
    first = burn("u->v")
    stage.manager.fire(first, texts(first))
    stage.told("u-&gt;v")
    assert [refusal.status for refusal in stage.slack.refusals] == [500, 500]
    stage.slack.refusals.clear()

    pair = [burn(flow, channel="payments") for flow in ("w->x", "y->z")]
    start = len(stage.other.refusals)
    for labels in pair:
        stage.manager.fire(labels, texts(labels))
    stage.told("w-&gt;x", receiver=stage.other)
    stage.told("y-&gt;z", receiver=stage.other)
    refused = stage.other.refusals[start:]
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
def test_no_text_breaks_a_message(stage: Stage, name: str, text: str) -> None:
    """The stand-in refuses raw markup, and lengths that Slack folds or cuts."""
    labels = cause(f"MM2Hostile{name.title()}", f"{name}->h", topic=text, owner=text)
    words = dict.fromkeys(("summary", "impact", "budget", "action"), f"{name} {text}")
    stage.manager.fire(labels, texts(labels, **words))
    [message] = stage.told(f"FIRING page · {name} ")
    [attachment] = message["attachments"]
    assert "<" not in attachment["text"].replace("&lt;", "")
    assert "`" not in attachment["text"] + attachment["title"]
    assert attachment["text"].count("\n") < 5


def test_the_command_in_the_message_silences_what_it_is_about(stage: Stage) -> None:
    labels = burn('it\'s->"h"')
    stage.manager.fire(labels, texts(labels))
    [message] = stage.told("it's-&gt;")
    footer = message["attachments"][0]["footer"]
    command = shlex.split(footer.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
    assert command[:3] == ["amtool", "silence", "add"]
    address = next(part for part in command if part.startswith("--alertmanager.url="))
    assert address == "--alertmanager.url=http://alertmanager.example"
    stage.manager.amtool(*(part for part in command[1:] if part != address), "--author=somebody")
    state = {
        each["labels"]["flow"]: bool(each["status"]["silencedBy"])
        for each in stage.manager.alerts()
        if each["labels"]["alertname"] == labels["alertname"] and each["labels"]["sli"] == "latency"
    }
    assert [flow for flow, silenced in state.items() if silenced] == [labels["flow"]]


def _of_flow(receiver: WebhookReceiver, flow: str) -> Callable[[], list[dict[str, Any]]]:
    return lambda: [each for each in receiver.messages if each["groupLabels"].get("flow") == flow]
