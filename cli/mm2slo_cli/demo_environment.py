"""The lab, traffic and exporter of the demo, and the wait for its final figures.

Figures are compared exactly, so they must be complete and stable.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from mm2slo_cli.demo_figures import (
    NO_ACTIVITY,
    ActivityMeter,
    DemoFigures,
    FlowFigures,
    topic_sums,
    unread_report,
)
from mm2slo_cli.exporter import run_exporter
from mm2slo_cli.service_process import SignalInterrupts
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.log_redaction import JsonFormatter
from mm2slo_exporter.service.exporter_service import Exporter
from mm2slo_kafka.kafka_errors import translated
from mm2slo_lab.lab_traffic import CONSUMER_GROUPS, STREAMS, Traffic
from mm2slo_lab.running_lab import Lab

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
            flows.append(FlowFigures(report or unread_report(flow), recent))
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
        Traffic(clusters, STREAMS, CONSUMER_GROUPS) as traffic,
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


DEADLINE = 90.0
_POLL = 0.25

_STEADY = 3.0
"""Seconds without a change after which figures are stable: the lab writes checkpoints and offset
syncs every second."""


@dataclass(frozen=True, slots=True)
class FinalFigures:
    """The figures, and what they lack to be complete and stable."""

    figures: DemoFigures
    missing: tuple[str, ...]


def wait_for_final_figures(
    environment: DemoEnvironment,
    deadline: float,
    report_step: Callable[[str], None] = lambda _line: None,
) -> FinalFigures:
    """Return the final figures, or those after *deadline* seconds.

    Stops the traffic once all figures are known, then waits until everything is replicated and
    nothing changes. Raises KafkaOperationError when a cluster rejects the last records.
    """
    end = time.monotonic() + deadline
    report_step("waiting for the first figures")
    figures = _wait(environment, end, lambda figures: not figures.missing)
    missing = figures.missing
    if not missing:
        report_step("waiting until everything is replicated")
        stability = StabilityCheck(environment.traffic.finish())
        figures = _wait(
            environment, end, lambda figures: not figures.missing and stability.is_stable(figures)
        )
        missing = figures.missing
        if not missing and not stability.is_stable(figures):
            missing = ("the figures are still changing",)
    return FinalFigures(figures, missing)


class StabilityCheck:
    """Detects that all *written* records are replicated and the figures no longer change.

    *written* maps (cluster, topic) to the sum of end offsets.
    """

    def __init__(
        self,
        written: Mapping[tuple[str, str], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._written = written
        self._clock = clock
        self._before: object = None
        self._since = clock()

    def is_stable(self, figures: DemoFigures) -> bool:
        """Add the newest figures; True once they have not changed for three seconds."""
        now = self._clock()
        # Not the whole reports: their times and latencies change with every round.
        flows = figures.to_json()["flows"]
        snapshot = [(flow["topics"], flow["groups"]) for flow in flows]
        if not self._is_replicated(figures) or snapshot != self._before:
            self._before, self._since = snapshot, now
            return False
        return now - self._since >= _STEADY

    def _is_replicated(self, figures: DemoFigures) -> bool:
        ends = {
            (flow.report.flow.source, topic.pair.source): topic_sums(topic)["source_end"]
            for flow in figures.flows
            for topic in flow.topics
        }
        return all(flow.lag.records == 0 for flow in figures.flows) and all(
            ends.get(place) == end for place, end in self._written.items()
        )


def _wait(
    environment: DemoEnvironment, end: float, is_done: Callable[[DemoFigures], bool]
) -> DemoFigures:
    while True:
        figures = environment.figures()
        if is_done(figures) or time.monotonic() >= end:
            return figures
        time.sleep(_POLL)


def prepare_shutdown(interrupts: SignalInterrupts, progress: Console) -> None:
    """Ignore further signals and print that the demo is shutting down."""
    interrupts.enabled = False
    if progress.is_terminal:
        progress.print("shutting down ...", style="dim")
