"""Slack messages after faults, with exporter, Prometheus and Alertmanager."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from alerting_lab import AlertingLab, start_alerting_lab
from steady_load import SteadyLoad
from topic_reader import count_copies

from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

SILENCE = "amtool silence add --alertmanager.url=http://alertmanager.example -d 2h -c known"


@contextmanager
def healthy_lab(lab: Lab, folder: Path, topic: str, flows: list[str]) -> Iterator[AlertingLab]:
    """Produce to *topic* on each flow's source, and wait until all flows are healthy."""
    with ExitStack() as stack:
        for source, target in (flow.split("->") for flow in flows):
            lab.cluster(source).admin.create_topic(topic, 2)
            copies = f"{source}.{topic}"
            admin = lab.cluster(target).admin
            wait_for(lambda a=admin, c=copies: a.partition_count(c) > 0, "the copy")  # type: ignore[misc]
            load = SteadyLoad(lab.cluster(source).librdkafka(), topic, (0, 1))
            stack.enter_context(load)
        wait_for(lambda: count_copies(lab, topic) > 0, "the first copies")
        running = stack.enter_context(start_alerting_lab(lab, folder, flows, [topic]))
        running.wait_healthy(flows)
        assert running.messages == []
        yield running


def without_values(payload: dict[str, Any]) -> dict[str, Any]:
    """The only attachment, with placeholders for times and values."""
    [attachment] = payload["attachments"]
    text = re.sub(r"(\d+ [A-Z][a-z]{2} )?\d\d:\d\d", "TIME", attachment["text"])
    text = re.sub(r"(?<=\*Lasted\* )[^,]*", "LONG", text)
    return {**attachment, "text": text}


def test_stop_sends_one_page_and_one_resolved_message(
    lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    with healthy_lab(lab, tmp_path, fresh_topic, ["us->eu"]) as running:
        lab.mm2.stop()
        page = running.wait_message(1, "the page")
        assert without_values(page.payload) == {
            "title": "🔥 FIRING page · Flow us-&gt;eu has stopped.",
            "text": "Consumers on eu read nothing new from us, and a failover now would leave "
            "the backlog unreplicated.\n*Since* TIME UTC\n*Action* Check that "
            "MirrorMaker 2 is running and read its log; query "
            'mm2_connector_state{flow="us-&gt;eu"} == 1 for a paused or failed connector.',
            "fallback": "🔥 FIRING page · Flow us-&gt;eu has stopped.",
            "callback_id": "",
            "footer": f"{SILENCE} 'alertname=\"MM2FlowStopped\"' 'flow=\"us-&gt;eu\"'",
            "color": "#c62828",
            "mrkdwn_in": ["text"],
        }
        # What the stop burns raises no alert, now or later.
        lab.mm2.start()
        resolved = running.wait_message(2, "the resolved message")
        attachment = without_values(resolved.payload)
        title = "✅ RESOLVED page · Flow us-&gt;eu has stopped."
        # Alerts that the stop inhibited are listed if they have ended too.
        assert re.fullmatch(re.escape(title) + r"( \(and \d more\))?", attachment["title"])
        first, *others = attachment["text"].splitlines()
        assert first == "*Lasted* LONG, TIME to TIME UTC"
        assert all("burning error budget" in each for each in others)
        assert (attachment["footer"], attachment["color"]) == ("", "#2e7d32")
        wait_for(lambda: not running.active_pages(), "the pages to end", 240, 1)
        assert len(running.messages) == 2, running.monitoring.slack.titles()
        running.wait_until_silenced()
        assert len(running.messages) == 2, running.monitoring.slack.titles()


def test_cluster_down_sends_one_page(lab: Lab, tmp_path: Path, fresh_topic: str) -> None:
    with healthy_lab(lab, tmp_path, fresh_topic, ["us->eu", "eu->us"]) as running:
        lab.cluster("eu").stop()
        page = running.wait_message(1, "the page")
        assert page.title == "🔥 FIRING page · Cluster eu does not answer."
        server = running.monitoring.prometheus
        roles = 'count(ALERTS{alertname="MM2ClusterUnreachable",alertstate="firing"}) == 2'
        wait_for(lambda: server.holds(roles), "both roles")
        lab.cluster("eu").start()

        def pages() -> list[str]:
            # A machine that catches up slowly may burn budget, which gives tickets.
            return [title for title in running.monitoring.slack.titles() if " page · " in title]

        wait_for(lambda: len(pages()) >= 2, "the resolved message", 400)
        # If requests time out again after the start, these are outages of their own at this scale.
        assert re.fullmatch(
            r"✅ RESOLVED page · Cluster eu "
            r"(does not answer|was unreachable "
            r"(\d times in [\dms ]+|for \d+(\.\d+)?% of the last 2m))\.",
            pages()[-1],
        )
        lab.mm2.wait_mirroring()
        wait_for(lambda: not running.active_pages(), "the pages to end", 400, 1)
        assert len(pages()) == 2, running.monitoring.slack.titles()
