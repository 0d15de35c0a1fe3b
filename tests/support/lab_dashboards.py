"""Runs the dashboards' queries against a real Prometheus that scrapes an exporter over a lab."""

from __future__ import annotations

import ast
import math
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import pytest
import yaml
from alerting_lab import SCALE, AlertingLab, start_alerting_lab
from confluent_kafka import Consumer, KafkaException
from exporter_watch import Watch, watch
from generated_dashboards import Json, dashboards, fill_variables, named_targets, panels, variables
from monitoring import prometheus
from recording_server import Answer, RecordingServer
from steady_load import SteadyLoad
from topic_reader import count_copies

from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.catalogue.service_metrics import Bound
from mm2slo_dashboards.dashboard_files import build_dashboards
from mm2slo_lab.lab_data import commit
from mm2slo_lab.lab_monitoring import Prometheus
from mm2slo_lab.lab_topology import LabError
from mm2slo_lab.managed_process import request_json, wait_for
from mm2slo_lab.running_lab import Lab

_SETTINGS = {
    "log_level": 2,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6000,
}


class CommittingGroup:
    """Consumes *topic* as *group* in a thread of its own."""

    def __init__(self, properties: Mapping[str, str], topic: str, group: str) -> None:
        self._consumer = Consumer({**_SETTINGS, **properties, "group.id": group})
        self._consumer.subscribe([topic])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"commits-{group}", daemon=True)
        self.commits = 0

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._consumer.consume(100, timeout=0.3):
                continue
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException:
                continue  # during a rebalance; the next records are committed
            self.commits += 1
        self._consumer.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        self._thread.join()


AUDIT_LABELS: Final = 'flow="us->eu",source="us",target="eu"'


def audit_metrics() -> str:
    """The metrics that the report service publishes for one finished audit."""
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
        f"mm2_audit_record_size_bytes{{{AUDIT_LABELS}}} 100",
        f"mm2_audit_sampled_ratio{{{AUDIT_LABELS}}} 1",
        f'mm2_audit_evidence_records{{{AUDIT_LABELS},verdict="lost"}} 3',
        f'mm2_audit_unevidenced_records{{{AUDIT_LABELS},verdict="lost"}} 0',
    ]
    lines += [
        f'{name}{{{AUDIT_LABELS},{label},bound="{bound}"}} {value}'
        for name, label, bounds in (
            ("mm2_audit_records_ratio", 'verdict="lost"', (0.003, 0.003, 0.003)),
            ("mm2_audit_keys_ratio", 'property="affinity"', (0, 0, 0)),
            ("mm2_audit_latency_seconds", 'measure="end-to-end",percentile="p99"', (None, 1, 2)),
        )
        for bound, value in zip(Bound, bounds, strict=True)
        if value is not None
    ]
    for verdict in Verdict:
        count = {Verdict.MATCHED: 997, Verdict.LOST: 3}.get(verdict, 0)
        lines.append(f'mm2_audit_records{{{AUDIT_LABELS},verdict="{verdict.value}"}} {count}')
    return "\n".join((*lines, ""))


@contextmanager
def monitored_lab(
    lab: Lab, folder: Path, topic: str, group: str
) -> Iterator[tuple[AlertingLab, LabDashboards]]:
    """A healthy flow with a recorded budget; *group* has committed once."""
    lab.cluster("us").admin.create_topic(topic, 2)
    wait_for(lambda: lab.cluster("eu").admin.partition_count(f"us.{topic}") > 0, "the copy")
    send = lab.cluster("us").librdkafka()
    with SteadyLoad(send, topic, (0, 1)):
        wait_for(lambda: count_copies(lab, topic) > 0, "the first copies")
        commit(send, topic, group, {0: 5, 1: 5})
        with (
            RecordingServer(lambda _: Answer(body=audit_metrics())) as reports,
            start_alerting_lab(lab, folder, [FLOW], [topic], SCALE) as watched,
        ):
            scrape_more(watched, reports.address)
            watched.wait_healthy([FLOW])
            yield watched, LabDashboards(watched.monitoring.prometheus)


def scrape_more(watched: AlertingLab, reports: str) -> None:
    """Make Prometheus scrape itself and the report service as well."""
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
    wait_for(lambda: server.holds('up{job="mm2slo-report"} == 1'), "the audit")


@contextmanager
def observe_flow(
    lab: Lab,
    folder: Path,
    topics: Sequence[str],
    *,
    flow: Mapping[str, object] | None = None,
) -> Iterator[tuple[Watch, LabDashboards]]:
    """Monitor only *topics* of the flow, and groups whose name starts with a topic's.

    *flow* overrides its settings.
    """
    settings = {
        "topics": list(topics),
        "groups": [f"{topic}.*" for topic in topics],
        "slice": "1s",
        "stall_after": "3s",
        "canary": {"deadline": "4s", "latency_tiers": ["2s", "4s"]},
        **(flow or {}),
    }
    with watch(lab, [FLOW], flow=settings) as seen:
        seen.until_ready()
        targets = {"mm2slo": [seen.url.removeprefix("http://")]}
        with prometheus(folder, targets, scale=SCALE) as server:
            yield seen, LabDashboards(server)


FLOW: Final = "us->eu"
Found = dict[str, Any]
Key = tuple[str, str]
_RECENT: Final = 60.0
_STEP: Final = 5.0


def wait_until_equal(read: Callable[[], object], expected: object) -> None:
    """Wait until *read* returns *expected*; fails with the last value."""
    given: list[object] = []

    def agrees() -> bool:
        given.append(read())
        return bool(given[-1] == expected)

    with suppress(LabError):
        wait_for(agrees, "the figure", 180, 0.5)
    assert given[-1] == expected


# Four scrapes of 1 s, as production has four of 15 s; an interval of one step.
_BUILT_IN: Final = {"__rate_interval": "8s", "__range": "5m", "__interval": "20s"}


@dataclass(frozen=True)
class LabDashboards:
    """The dashboards over *server*, with `FLOW` selected, or all where a variable allows it."""

    server: Prometheus

    def empty_panels(self) -> set[Key]:
        """The panels without data in the last minute, by uid and title."""
        return {
            (uid, panel["title"])
            for uid, dashboard in dashboards().items()
            for panel in panels(dashboard)
            if not any(self._recent_samples(dashboard, target) for target in panel["targets"])
        }

    def values(
        self, uid: str, title: str, *by: str, name: str | None = None, **chosen: str
    ) -> dict[tuple[str, ...], float]:
        """The current values of a panel by the labels *by*.

        *name* is the legend or column title, where a panel has several queries; *chosen* are
        values of variables other than all.
        """
        dashboard, target = _target(uid, title, name)
        text = self._text(dashboard, target["expr"], chosen)
        found = {
            tuple(each["metric"].get(label, "") for label in by): float(each["value"][1])
            for each in self._ask("query", {"query": text})
        }
        return {key: value for key, value in found.items() if not math.isnan(value)}

    def value(
        self, uid: str, title: str, *, name: str | None = None, **labels: str
    ) -> float | None:
        """The current value of the panel's only series with *labels*; None without it."""
        found = self.values(uid, title, *labels, name=name)
        wanted = tuple(labels.values())
        return found.get(wanted)

    def time_series(
        self, uid: str, title: str, name: str | None = None
    ) -> list[tuple[float, float]]:
        """The points of the last minute of a panel's only series, a second apart."""
        dashboard, target = _target(uid, title, name)
        [found] = self._range(self._text(dashboard, target["expr"]), step=1.0)
        return [(float(at), float(value)) for at, value in found["values"]]

    def choices(self, uid: str, variable: str) -> set[str]:
        """The values of a dashboard variable, with the flow selected."""
        query = variables(dashboards()[uid])[variable]["query"]
        series, _, label = query.removeprefix("label_values(").removesuffix(")").rpartition(", ")
        text = self._text(dashboards()[uid], series, {"flow": FLOW})
        return {each["metric"][label] for each in self._ask("query", {"query": text})}

    def annotations(self, uid: str) -> dict[str, list[Found]]:
        """The series of each annotation over the last minute, by its name."""
        dashboard = dashboards()[uid]
        return {
            each["name"]: self._range(self._text(dashboard, each["expr"]), step=1.0)
            for each in dashboard["annotations"]["list"]
        }

    def _recent_samples(self, dashboard: Json, target: Json) -> list[Found]:
        text = self._text(dashboard, target["expr"])
        found = self._ask("query", {"query": text}) if target["instant"] else self._range(text)
        return [
            each
            for each in found
            if any(
                not math.isnan(float(value)) for _, value in each.get("values", [each.get("value")])
            )
        ]

    def _text(
        self, dashboard: Json, expression: str, chosen: Mapping[str, str] | None = None
    ) -> str:
        return fill_variables(dashboard, expression, FLOW, _BUILT_IN, chosen)

    def _range(self, text: str, step: float = _STEP) -> list[Found]:
        # Whole seconds, so that the points of two queries have the same times.
        now = math.floor(time.time())
        times = {"start": f"{now - _RECENT}", "end": f"{now}", "step": f"{step}"}
        return self._ask("query_range", {"query": text, **times})

    def _ask(self, path: str, parameters: Mapping[str, str]) -> list[Found]:
        query = urllib.parse.urlencode(parameters)
        answer = request_json(f"{self.server.url}/api/v1/{path}?{query}")
        found: list[Found] = answer["data"]["result"]
        return found


def _target(uid: str, title: str, name: str | None) -> tuple[Json, Json]:
    """A panel's query: its only one, or the one with the legend or column *name*."""
    dashboard = dashboards()[uid]
    [panel] = [each for each in panels(dashboard) if each["title"] == title]
    targets = named_targets(panel)
    if name is None:
        [target] = targets.values()
    else:
        target = targets[name]
    return dashboard, target


PANEL_FAULTS: Final[Mapping[tuple[str, str], str]] = {
    (dashboard.uid.value, panel.title): panel.fills_on
    for dashboard in build_dashboards()
    for panel in dashboard.panels
    if panel.fills_on
}
"""The panels that a healthy flow leaves empty, by uid and title, with the fault that fills them."""


def covers_fault(fault: str) -> pytest.MarkDecorator:
    """Declare that a test injects *fault*; it gets the panels of that fault as `fault_panels`.

    The fault must be a literal in the test's file, so that `declared_faults` finds it.
    """
    panels = frozenset(key for key, named in PANEL_FAULTS.items() if named == fault)
    if not panels:
        raise ValueError(
            f"no panel fills on {fault!r}: expected one of {set(PANEL_FAULTS.values())}"
        )
    return pytest.mark.parametrize(
        "fault_panels", [pytest.param(panels, id=fault.replace(" ", "-"))]
    )


def declared_faults(folder: Path) -> Iterator[str]:
    """The faults that tests in *folder* declare, without importing the tests."""
    for path in sorted(folder.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for each in node.decorator_list:
                    match each:
                        case ast.Call(
                            func=ast.Name(id="covers_fault"), args=[ast.Constant(value=fault)]
                        ):
                            yield str(fault)
