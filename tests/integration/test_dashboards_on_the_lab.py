"""Every query of the dashboards, asked of a real Prometheus that scrapes the real exporter.

In a healthy run each panel has data, or is one that names the fault in which it fills; with
MirrorMaker 2 stopped those of that fault fill, with the values that the fault has.
"""

from __future__ import annotations

import json
import math
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from dashed import Json, dashboards, panels, variables
from paging import SCALE, paged
from reading import copied
from recording_server import Answer, RecordingServer
from steady import SteadyLoad

from mm2slo_core.audit.verdict import Verdict
from mm2slo_dashboards.files import described
from mm2slo_dashboards.preview.interpolation import ALL, interpolate
from mm2slo_kafka.traffic import commit
from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from paging import Paged

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

FLOW = "us->eu"
GROUP = "order-service"
STOPPED = "a stopped MirrorMaker 2"
# Four scrapes of a second, as production has four of fifteen.
BUILTIN = {"__rate_interval": "8s", "__range": "5m"}
FILLS = {
    (board.identity.value, panel.title): panel.fills
    for board in described()
    for panel in board.panels
}
AUDIT_LABELS = 'flow="us->eu",source="us",target="eu"'


def audited() -> str:
    """What the report service publishes of one finished audit."""
    now = time.time()
    lines = [
        'mm2_audit_runs{state="finished"} 1',
        'mm2_audit_runs{state="running"} 0',
        'mm2_audit_runs{state="failed"} 0',
        f"mm2_audit_last_run_timestamp_seconds{{{AUDIT_LABELS}}} {now - 60}",
        f"mm2_audit_window_end_timestamp_seconds{{{AUDIT_LABELS}}} {now - 120}",
        f"mm2_audit_complete_up_to_timestamp_seconds{{{AUDIT_LABELS}}} {now - 180}",
        f"mm2_audit_faults_records{{{AUDIT_LABELS}}} 3",
        f"mm2_audit_unaudited_topics{{{AUDIT_LABELS}}} 0",
    ]
    for verdict in Verdict:
        count = {Verdict.MATCHED: 997, Verdict.LOST: 3}.get(verdict, 0)
        lines.append(f'mm2_audit_records{{{AUDIT_LABELS},verdict="{verdict.value}"}} {count}')
    return "\n".join((*lines, ""))


@contextmanager
def running(lab: Lab, folder: Path, topic: str) -> Iterator[Paged]:
    """A flow with records and a group, watched by all that the dashboards show."""
    lab.cluster("us").admin.create_topic(topic, 2)
    wait_for(lambda: lab.cluster("eu").admin.partition_count(f"us.{topic}") > 0, "the copy", 60)
    send = lab.cluster("us").librdkafka()
    with SteadyLoad(send, topic, (0, 1)):
        wait_for(lambda: copied(lab, topic) > 0, "the first copies", 60)
        commit(send, topic, GROUP, {0: 5, 1: 5})
        with (
            RecordingServer(lambda _: Answer(body=audited())) as reports,
            paged(lab, folder, [FLOW], [topic], SCALE) as watched,
        ):
            scrape_more(watched, reports.address)
            watched.healthy([FLOW])
            yield watched


def scrape_more(watched: Paged, reports: str) -> None:
    """Have Prometheus scrape itself and the report service as well."""
    server = watched.monitoring.prometheus
    path = server.folder / "prometheus.yml"
    document = yaml.safe_load(path.read_text("utf-8"))
    for job, address in (("prometheus", server.url), ("mm2slo-report", reports)):
        targets = [address.removeprefix("http://")]
        document["scrape_configs"].append(
            {"job_name": job, "static_configs": [{"targets": targets}]}
        )
    path.write_text(yaml.safe_dump(document), "utf-8")
    server.reload()
    wait_for(lambda: server.holds('up{job="mm2slo-report"} == 1'), "the audit", 30)


def ask(url: str, path: str, parameters: Mapping[str, str]) -> list[dict[str, Any]]:
    query = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{query}", timeout=30) as reply:  # noqa: S310 - ours
        found: list[dict[str, Any]] = json.load(reply)["data"]["result"]
    return found


def answers(watched: Paged, dashboard: Json, panel: Json) -> list[dict[str, Any]]:
    """What Prometheus answers to the panel's queries, as Grafana asks them."""
    url = watched.monitoring.prometheus.url
    every = {name: each.get("allValue", "") for name, each in variables(dashboard).items()}
    choices = {name: [ALL] if each else [FLOW] for name, each in every.items()}
    now = time.time()
    found: list[dict[str, Any]] = []
    for target in panel["targets"]:
        text = interpolate(target["expr"], choices, everything=every, builtin=BUILTIN)
        if target["instant"]:
            found += ask(url, "query", {"query": text, "time": f"{now}"})
        else:
            found += ask(
                url,
                "query_range",
                {"query": text, "start": f"{now - 60}", "end": f"{now}", "step": "5"},
            )
    return [
        each
        for each in found
        if any(not math.isnan(float(value)) for _, value in each.get("values", [each.get("value")]))
    ]


def empty(watched: Paged) -> set[tuple[str, str]]:
    """The panels that have no data."""
    return {
        (uid, panel["title"])
        for uid, dashboard in dashboards().items()
        for panel in panels(dashboard)
        if not answers(watched, dashboard, panel)
    }


def value(watched: Paged, uid: str, title: str, **labels: str) -> float:
    """The newest value of the panel's only series with *labels*."""
    [panel] = [each for each in panels(dashboards()[uid]) if each["title"] == title]
    found = [
        each
        for each in answers(watched, dashboards()[uid], panel)
        if labels.items() <= each["metric"].items()
    ]
    assert len(found) == 1, found
    return float(found[0].get("values", [found[0].get("value")])[-1][1])


def test_panels_show_health_and_the_fault_that_they_name(
    lab: Lab, tmp_path: Path, fresh_topic: str
) -> None:
    fault_only = {key for key, fault in FILLS.items() if fault}
    filled_by_stop = {key for key, fault in FILLS.items() if fault == STOPPED}
    with running(lab, tmp_path, fresh_topic) as watched:
        wait_for(lambda: not empty(watched) - fault_only, "all panels", 120, 2)
        assert value(watched, "mm2slo-overview", "How many flows run?", state="running") == 1
        assert value(watched, "mm2slo-overview", "How many flows run?", state="stopped") == 0
        assert value(watched, "mm2slo-flow", "In which state is it?") == 0
        assert value(watched, "mm2slo-audit", "How many records are at fault?") == 3
        assert value(watched, "mm2slo-audit", "Which share of the records is that?") == 0.003
        assert value(watched, "mm2slo-slo", "How many budgets are used up?") == 0
        assert filled_by_stop & empty(watched)
        lab.mm2.stop()
        try:
            watched.told(1, "the page")
            wait_for(lambda: not filled_by_stop & empty(watched), "the panels of a stop", 60, 1)
            assert value(watched, "mm2slo-overview", "How many flows run?", state="stopped") == 1
            assert value(watched, "mm2slo-flow", "In which state is it?") == 3
            assert value(watched, "mm2slo-flow", "How far behind is it?") > 4
            stalled = "Which topics stand still?"
            assert value(watched, "mm2slo-flow", stalled, topic=fresh_topic) == 2
            assert (
                value(
                    watched,
                    "mm2slo-overview",
                    "Which alerts fire, and who says what to do?",
                    alertname="MM2FlowStopped",
                )
                == 1
            )
            assert value(watched, "mm2slo-flow", "How fast does it burn?") > 1
        finally:
            lab.mm2.start()
