"""The lab, traffic and exporter of the demo."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_cli.demo.demo_figures import NO_ACTIVITY, DemoFigures, flow_figures
from mm2slo_cli.demo.recent_activity import ActivityMeter
from mm2slo_cli.demo.traffic import Traffic
from mm2slo_cli.demo.workload import READERS, STREAMS
from mm2slo_cli.exporter import run_exporter
from mm2slo_core.config import load_config
from mm2slo_core.json_logs import JsonFormatter
from mm2slo_kafka.kafka_errors import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mm2slo_core.config import Config
    from mm2slo_exporter.service.exporter import Exporter
    from mm2slo_lab import Lab

# Shorter than the defaults of five to thirty seconds, since the demo is interactive.
_EXPORTER = {
    "listen": "127.0.0.1:0",
    "poll_interval": "1s",
    "start_offsets_interval": "2s",
    "metadata_interval": "2s",
    "groups_interval": "1s",
    "topic_configs_interval": "5s",
    "granularity": "partition",
}
_FLOW = {"stall_after": "10s"}
# The shortest window, so that an outage of seconds spends a visible share of its budget.
_OBJECTIVES = "slo: {window: 3d}\n"


@dataclass
class DemoEnvironment:
    """A lab with traffic, and its exporter."""

    lab: Lab
    traffic: Traffic
    exporter: Exporter
    url: str
    config: Config
    started_at: int
    """Epoch ms, before the first record."""
    extra_urls: dict[str, str] = field(default_factory=dict)
    """URLs of further services, by name."""
    _meters: dict[str, ActivityMeter] = field(default_factory=dict)

    def figures(self) -> DemoFigures:
        """Return the current figures of the exporter."""
        reports = {report.flow: report for report in self.exporter.reports()}
        flows = []
        for flow in self.lab.topology.flows:
            report = reports.get(flow)
            meter = self._meters.setdefault(flow.label, ActivityMeter())
            recent = NO_ACTIVITY if report is None else meter.read(report)
            flows.append(flow_figures(flow, report, recent))
        return DemoFigures(
            tuple(flows),
            urls={
                "page": f"{self.url}/",
                "metrics": f"{self.url}/metrics",
                "ready": f"{self.url}/readyz",
                **self.extra_urls,
            },
            bootstrap_servers={
                alias: self.lab.cluster(alias).bootstrap_servers
                for alias in self.lab.topology.clusters
            },
        )

    @property
    def mm2_paused(self) -> bool:
        return self.lab.mm2.process.paused

    def toggle_mm2(self) -> None:
        """Pause or resume MirrorMaker 2, if it is running."""
        if self.mm2_paused:
            self.lab.mm2.resume()
        elif self.lab.mm2.running:
            self.lab.mm2.pause()


@contextmanager
def start_environment(lab: Lab, report_step: Callable[[str], None]) -> Iterator[DemoEnvironment]:
    """Create topics, start traffic and an exporter; *lab* keeps running afterwards.

    Raises KafkaOperationError when a topic cannot be created.
    """
    report_step("creating topics")
    for stream in STREAMS:
        with translated(stream.cluster, f"creating topic {stream.topic!r}"):
            lab.cluster(stream.cluster).admin.create_topic(stream.topic, stream.partitions)
    clusters = {alias: lab.cluster(alias).librdkafka() for alias in lab.topology.clusters}
    text = lab.config_yaml(flow=_FLOW, exporter=_EXPORTER) + _OBJECTIVES
    config, started_at = load_config(text), time.time_ns() // 1_000_000
    with (
        _logging_to(lab.runtime.log_file("exporter")),
        Traffic(clusters, STREAMS, READERS) as traffic,
    ):
        report_step("starting the exporter")
        with run_exporter(lambda: config) as (exporter, server):
            yield DemoEnvironment(lab, traffic, exporter, server.url, config, started_at)


@contextmanager
def _logging_to(file: Path) -> Iterator[None]:
    """Log to *file*: log lines would disturb the live view."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(JsonFormatter("repl-exporter"))
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
