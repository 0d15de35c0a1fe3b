"""The generated dashboards over a lab, drawn as pages: healthy, and after MirrorMaker 2 stops.

With the folder MM2SLO_SCREENSHOTS, more flows are monitored for longer, and pictures of the pages
are saved there: `make screenshots`.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml
from alerting_lab import AlertingLab, start_alerting_lab
from chromium import browsing, find_chromium
from dashboard_preview.board_page import WIDTH, down_to, rendered
from dashboard_preview.grafana_json import dashboard
from dashboard_preview.time_range import Span
from generated_dashboards import load_for_config
from lab_dashboards import CommittingGroup
from preview_fixtures import panel_html, visible_texts
from steady_load import SteadyLoad
from topic_reader import count_copies

from mm2slo_core.config.config_loader import load_config
from mm2slo_core.topology import Flow
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]


class HttpPrometheus:
    """The `Prometheus` port over the server at *url*."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, parameters: Sequence[tuple[str, str]]) -> Any:
        address = f"{self._url}/api/v1/{path}?{urlencode(parameters)}"
        try:
            with urlopen(address, timeout=60) as response:
                return json.load(response)["data"]
        except HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {json.load(error)['error']}") from None


FOLDER: Final = os.environ.get("MM2SLO_SCREENSHOTS")
CLUSTERS: Final = ("us", "eu", "ap") if FOLDER else ("us", "eu")
FLOWS: Final = tuple(flow for each in CLUSTERS[1:] for flow in (Flow("us", each), Flow(each, "us")))
TOPICS: Final = {"orders": 0.05, "payments": 0.1, "shipments": 0.2}
"""Seconds between two records by topic."""
BEFORE: Final = 10 if FOLDER else 1
"""Minutes before the stop."""
STOPPED: Final = 330 if FOLDER else 5
"""Seconds; series with five-minute steps have a point in them."""
CONFIG: Final = yaml.safe_dump(
    {
        "clusters": {each: {"bootstrap_servers": f"{each}:9092"} for each in CLUSTERS},
        "flows": [{"flow": str(each)} for each in FLOWS],
    }
)
BOARDS: Final = {
    uid: dashboard(document, uid) for uid, document in load_for_config(load_config(CONFIG)).items()
}
LAST_ROW: Final = {"mm2slo-overview": "", "mm2slo-flow": "What is the cause?"}
"""The row above which the picture ends; empty for the whole dashboard."""


def is_replicated(lab: Lab, flow: Flow, topic: str) -> bool:
    """Whether the target has the topic."""
    return lab.cluster(flow.target).admin.partition_count(f"{flow.source}.{topic}") > 0


@contextmanager
def monitored_flows(lab: Lab, folder: Path) -> Iterator[AlertingLab]:
    """Flows with records and consumer groups, monitored for a while."""
    with ExitStack() as stack:
        for topic, interval in TOPICS.items():
            for alias in CLUSTERS:
                lab.cluster(alias).admin.create_topic(topic, 2)
            for flow in FLOWS:
                arrived = partial(is_replicated, lab, flow, topic)
                wait_for(arrived, f"{topic} of {flow}")
            for alias in CLUSTERS:
                send = lab.cluster(alias).librdkafka()
                stack.enter_context(SteadyLoad(send, topic, (0, 1), interval))
            group = f"{topic.removesuffix('s')}-service"
            stack.enter_context(CommittingGroup(lab.cluster("us").librdkafka(), topic, group))
        wait_for(lambda: count_copies(lab, "orders") > 0, "the first copies")
        flows = [str(each) for each in FLOWS]
        watched = stack.enter_context(start_alerting_lab(lab, folder, flows, list(TOPICS)))
        watched.wait_healthy(flows)
        # One scrape a second; some are late on a busy machine.
        long = f'count_over_time(up{{job="mm2slo"}}[{BEFORE}m]) >= {BEFORE * 57}'
        wait_for(partial(watched.monitoring.prometheus.holds, long), "a history", 900, 1)
        yield watched


def draw_pages(watched: AlertingLab, folder: Path, minutes: int) -> dict[str, str]:
    """The page of each board; the Flow board shows the first flow."""
    server, end = HttpPrometheus(watched.monitoring.prometheus.url), time.time()
    span = Span(end - minutes * 60, end)
    titles = {uid: each.title for uid, each in BOARDS.items()}
    pages = {}
    folder.mkdir()
    for uid, each in BOARDS.items():
        given = {"flow": [str(FLOWS[0])]} if uid == "mm2slo-flow" else {}
        drawn = rendered(each, server, given=given, span=span, scrape=1.0, others=titles)
        (folder / f"{uid}.html").write_text(drawn.html, "utf-8")
        pages[uid] = drawn.html
    return pages


def save_pictures(folder: Path, state: str) -> None:
    """Save the pictures of the documentation."""
    if FOLDER is None or find_chromium() is None:
        return
    with browsing(folder / "profile") as tab:
        for uid, row in LAST_ROW.items():
            panels = BOARDS[uid].panels
            ends = [each.place.y for each in panels if each.title == row]
            ends += [max(each.place.y + each.place.h for each in panels)]
            name = {"mm2slo-overview": "fleet", "mm2slo-flow": "flow"}[uid]
            tab.show(WIDTH, round(down_to(ends[0])), dark=True)
            tab.open((folder / f"{uid}.html").as_uri())
            tab.picture(Path(FOLDER) / f"dashboards-{name}-{state}.png", whole=False)


def test_pages_show_healthy_and_stopped_flows(
    lab_factory: Callable[[LabTopology], Lab], tmp_path: Path
) -> None:
    lab = lab_factory(LabTopology(clusters=CLUSTERS, flows=FLOWS))
    count = len(FLOWS)
    with monitored_flows(lab, tmp_path) as watched:
        healthy = draw_pages(watched, tmp_path / "healthy", BEFORE)
        save_pictures(tmp_path / "healthy", "healthy")
        fleet, flow = healthy["mm2slo-overview"], healthy["mm2slo-flow"]
        states = visible_texts(panel_html(fleet, "Flows by state"))
        assert states[states.index("running") + 1] == f"{count}"
        rows = visible_texts(panel_html(fleet, "Flow status"))
        assert {str(each) for each in FLOWS} <= set(rows)
        assert rows.count("running") == count
        assert "0" in visible_texts(panel_html(fleet, "Firing alerts by severity"))
        assert 'class="line"' in panel_html(flow, "Records written and replicated")
        lab.mm2.stop()
        try:
            wait_for(lambda: len(watched.messages) >= count, "a page for each flow")
            server = watched.monitoring.prometheus
            stopped = 'max(mm2_flow_state{state="stopped"}) == 1'
            long = f"count_over_time(({stopped})[10m:1s]) >= {STOPPED}"
            wait_for(partial(server.holds, long), "a long stop", STOPPED + 90, 1)
            burnt = 'min(flow:mm2_slo_budget_remaining:ratio{sli="availability"}) < 0.5'
            wait_for(partial(server.holds, burnt), "a budget that is spent", 240, 1)
            # The mark of an alert is at its start, up to the wait for a spent budget ago.
            stopped_pages = draw_pages(watched, tmp_path / "stopped", BEFORE + STOPPED // 60 + 4)
            save_pictures(tmp_path / "stopped", "stopped")
        finally:
            lab.mm2.start()
    fleet, flow = stopped_pages["mm2slo-overview"], stopped_pages["mm2slo-flow"]
    assert visible_texts(panel_html(fleet, "Flow status")).count("stopped") == count
    assert "MM2FlowStopped" in visible_texts(panel_html(fleet, "Firing alerts"))
    assert "stopped" in visible_texts(panel_html(flow, "Flow state"))
    assert "page: MM2FlowStopped became active" in flow
