"""Everything that plays in the demo, up at once and ended at once."""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mm2slo_cli.demo.figures import NOTHING_YET, DemoFigures, flow_figures
from mm2slo_cli.demo.meter import Meter
from mm2slo_cli.demo.script import READERS, STREAMS
from mm2slo_cli.demo.traffic import Traffic
from mm2slo_cli.exporter import serving
from mm2slo_core.config import load_config
from mm2slo_core.json_logs import JsonFormatter
from mm2slo_kafka.errors import translated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mm2slo_core.config import Config
    from mm2slo_exporter.service.exporter import Exporter
    from mm2slo_lab import Lab

# A person watches: a second where the exporter's own cadence is five to thirty.
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


@dataclass
class Stage:
    """A lab with traffic, and an exporter that watches it."""

    lab: Lab
    traffic: Traffic
    exporter: Exporter
    url: str
    config: Config
    began_at: int
    """Epoch ms, before the first record."""
    beside: dict[str, str] = field(default_factory=dict)
    """Addresses of what runs beside the exporter, by name."""
    _meters: dict[str, Meter] = field(default_factory=dict)

    def figures(self) -> DemoFigures:
        """What the exporter says now."""
        reports = {report.flow: report for report in self.exporter.reports()}
        flows = []
        for flow in self.lab.topology.flows:
            report = reports.get(flow)
            meter = self._meters.setdefault(flow.label, Meter())
            recent = NOTHING_YET if report is None else meter.read(report)
            flows.append(flow_figures(flow, report, recent))
        return DemoFigures(
            tuple(flows),
            urls={
                "page": f"{self.url}/",
                "metrics": f"{self.url}/metrics",
                "ready": f"{self.url}/readyz",
                **self.beside,
            },
            bootstrap_servers={
                alias: self.lab.cluster(alias).bootstrap_servers
                for alias in self.lab.topology.clusters
            },
        )

    @property
    def mm2_paused(self) -> bool:
        """Whether MirrorMaker 2 is frozen."""
        return self.lab.mm2.process.paused

    def toggle_mm2(self) -> None:
        """Freeze MirrorMaker 2, or let it go on; nothing where it has ended."""
        if self.mm2_paused:
            self.lab.mm2.resume()
        elif self.lab.mm2.running:
            self.lab.mm2.pause()


@contextmanager
def staged(lab: Lab, tell: Callable[[str], None]) -> Iterator[Stage]:
    """Topics, traffic and an exporter for *lab*; all ended on the way out, the lab goes on.

    *tell* gets a line for each step. Raises KafkaOperationError when a topic cannot be created.
    """
    tell("creating topics")
    for stream in STREAMS:
        with translated(stream.cluster, f"creating topic {stream.topic!r}"):
            lab.cluster(stream.cluster).admin.create_topic(stream.topic, stream.partitions)
    clusters = {alias: lab.cluster(alias).librdkafka() for alias in lab.topology.clusters}
    text = lab.config_yaml(flow=_FLOW, exporter=_EXPORTER)
    config, began_at = load_config(text), time.time_ns() // 1_000_000
    with (
        _logging_to(lab.runtime.log_file("exporter")),
        Traffic(clusters, STREAMS, READERS) as traffic,
    ):
        tell("starting the exporter")
        with serving(lambda: config) as (exporter, server):
            yield Stage(lab, traffic, exporter, server.url, config, began_at)


@contextmanager
def _logging_to(file: Path) -> Iterator[None]:
    """Write this process's log to *file*: on the terminal it would tear the view."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        handler.close()
