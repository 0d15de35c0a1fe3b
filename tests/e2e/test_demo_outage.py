"""`mm2slo demo --scenario stop-mirror`: the outage on the terminal and on the status page.

Writes screenshots to the folder MM2SLO_SCREENSHOTS if it is set (`make screenshots`).
"""

import json
import os
import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from chromium import browsing, find_chromium
from demos import Terminal, all_exited, descendants, run_demo

from mm2slo_lab.lab_monitoring import is_installed

pytestmark = [
    pytest.mark.xdist_group("demo"),
    pytest.mark.lab,
    pytest.mark.long,
    pytest.mark.skipif(
        not (is_installed("prometheus") and is_installed("alertmanager")),
        reason="no Prometheus or Alertmanager: run make prometheus",
    ),
]
SIZE = (1180, 1320)


def fetch(address: str, accept: str = "text/html") -> str:
    request = urllib.request.Request(address, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=60) as response:
        return str(response.read().decode())


def fetch_json(address: str) -> Any:
    return json.loads(fetch(address, "application/json"))


@dataclass
class Outage:
    """Output while MirrorMaker 2 was stopped, and after the scenario."""

    terminal: Terminal
    stopped: str
    page: str = ""
    slo: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    details: list[dict[str, Any]] = field(default_factory=list)
    """By objective."""
    exit_code: int | None = None
    left: bool = True


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    folder = tmp_path_factory.mktemp("demo")
    pictures = os.environ.get("MM2SLO_SCREENSHOTS")
    with run_demo(folder, "--scenario", "stop-mirror") as terminal:
        terminal.read(lambda seen: "Slack received a page" in seen)
        found = Outage(terminal, stopped=fetch(terminal.page))
        terminal.read(lambda seen: "The page stays up" in seen, timeout=600)
        found.page, found.slo = fetch(terminal.page), fetch_json(f"{terminal.page}slo")
        found.report = fetch_json(f"{terminal.page}slo/report")
        found.details = [
            fetch_json(f"{terminal.page}slo/{each['id']}") for each in found.slo["entries"]
        ]
        if pictures and find_chromium():
            save_screenshots(terminal.page, Path(pictures), tmp_path_factory.mktemp("profile"))
        below = descendants(terminal.pid)
        terminal.press("q")
        found.exit_code = terminal.end()
        found.left = not all_exited(below) or list(folder.iterdir()) != []
        yield found


def save_screenshots(page: str, folder: Path, profile: Path) -> None:
    """Take screenshots of the page (light) and the report (dark)."""
    with browsing(profile) as tab:
        for name, address, section, dark in (
            ("page", page, "body", False),
            # The spent budget: the objectives are on the page.
            ("report", f"{page}slo/report?format=html", "#costs", True),
        ):
            tab.show(*SIZE, dark=dark)
            tab.open(address)
            tab.ask(f"document.querySelector('{section}').scrollIntoView({{behavior: 'instant'}})")
            tab.picture(folder / f"{name}.png", whole=False)


def test_scenario_prints_steps_in_80_columns(outage: Outage) -> None:
    seen = outage.terminal.seen
    assert max(map(len, outage.terminal.lines)) <= 80
    steps = (
        "MirrorMaker 2 has stopped", "MM2FlowStopped is firing", "FIRING page",
        "MirrorMaker 2 is running again", "RESOLVED", "the page shows the outage", "bad events,",
    )  # fmt: skip
    places = [seen.find(each) for each in steps]
    assert -1 not in places, dict(zip(steps, places, strict=True))
    assert places == sorted(places)
    assert "Traceback" not in seen


def test_page_map_shows_stopped_flows(outage: Outage) -> None:
    for label in ("us-&gt;eu", "eu-&gt;us"):
        assert re.search(rf'class="edge breached"[^>]*>\s*<title>{label}: stopped', outage.stopped)
    assert "<title>2 of 2 flows are stopped. " in outage.stopped


def test_page_shows_running_flows_after_the_outage(outage: Outage) -> None:
    entries = outage.slo["entries"]
    order = re.findall(r'data-slo="([^"]+)" data-status="([^"]+)"', outage.page)
    assert order == [(each["id"], each["status"]) for each in entries]
    for label in ("us-&gt;eu", "eu-&gt;us"):
        assert re.search(rf'class="edge \w+"[^>]*>\s*<title>{label}: (running|idle)', outage.page)
    assert "stopped" not in outage.page[outage.page.index("<h1>") : outage.page.index("</h1>")]


def test_outage_costs_each_flow_one_incident_within_the_scenario(outage: Outage) -> None:
    as_of = datetime.fromisoformat(outage.slo["as_of"])
    found = [each for each in outage.details if each["incidents"]]
    assert {each["entry"]["flow"]["name"] for each in found} == {"us->eu", "eu->us"}
    for detail in found:
        (incident,) = detail["incidents"]
        start, end = (datetime.fromisoformat(incident[name]) for name in ("start", "end"))
        assert as_of - timedelta(minutes=16) < start < end <= as_of
        assert incident["bad_events"] == detail["entry"]["events"]["bad"] >= 3
        share = incident["bad_events"] / detail["entry"]["budget"]["total_events"]
        assert incident["consumed_ratio"] == pytest.approx(share)
        assert share >= 0.005
        # By step: more than one point in the chart.
        assert len(detail["days"]) >= 2
        assert sum(each["bad_events"] for each in detail["days"]) == incident["bad_events"]
    assert len(outage.report["incidents"]) == len(found)


def test_q_exits_and_leaves_no_processes(outage: Outage) -> None:
    assert outage.exit_code == 0
    assert not outage.left
