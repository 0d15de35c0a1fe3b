"""Runs the exporter with meters around its parts; writes one line of JSON per cycle.

Each line on standard input compares rendering of the current series with prometheus_client. The end
of the input ends the process.
"""

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from mm2slo_cli.exporter import run_exporter
from mm2slo_core.config.config_loader import load_config
from mm2slo_exporter.canary.canary_messages import Arrived
from mm2slo_exporter.exposition_renderer import Renderer
from mm2slo_exporter.readers import cluster_reader, flow_reader, internals_store, probe_reader
from mm2slo_exporter.service import exporter_service, flow_runner
from mm2slo_exporter.state import failover_readiness, flow_judge, flow_topics, flow_tracker
from mm2slo_exporter.timeline import flow_writer
from mm2slo_kafka import offset_requests, topic_tail


@dataclass
class Reading:
    """Sums over calls, in seconds. `process` is the CPU time of all threads during the calls."""

    calls: int = 0
    thread: float = 0.0
    process: float = 0.0
    wall: float = 0.0


class Meters:
    """Readings by name; `take` resets them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: dict[str, Reading] = {}

    def wrap(self, owner: Any, method: str, name: str) -> None:
        setattr(owner, method, self.timed(getattr(owner, method), name))

    def timed(self, work: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(work)
        def measured(*arguments: Any, **named: Any) -> Any:
            thread, process, wall = time.thread_time(), time.process_time(), time.perf_counter()
            try:
                return work(*arguments, **named)
            finally:
                with self._lock:
                    found = self._readings.setdefault(name, Reading())
                    found.calls += 1
                    found.thread += time.thread_time() - thread
                    found.process += time.process_time() - process
                    found.wall += time.perf_counter() - wall

        return measured

    def take(self) -> dict[str, Reading]:
        with self._lock:
            found, self._readings = self._readings, {}
        return found


meters = Meters()
output_lock = threading.Lock()
families: list[Any] = []
wanted = threading.Event()
"""Set while a benchmark needs the families; otherwise they are not kept, to measure memory."""
kept = threading.Event()


def write_line(**line: object) -> None:
    with output_lock:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def instrument() -> None:
    for owner, method, name in (
        (flow_reader.FlowReader, "read", "collect"),
        (flow_reader.SideReader, "_read_ends", "collect: ends"),
        (flow_reader.SideReader, "_read_starts", "collect: starts"),
        (internals_store.InternalsStore, "view", "collect: view of internal topics"),
        (topic_tail.SharedTail, "poll", "tail internal topics"),
        (probe_reader.ProbeReader, "read_wanted", "look at waiting records"),
        (cluster_reader.ClusterReader, "_read_topics", "topics"),
        (cluster_reader.ClusterReader, "_read_topic_ids", "topic ids"),
        (cluster_reader.ClusterReader, "_read_configs", "topic configs"),
        (cluster_reader.ClusterReader, "_read_groups", "groups"),
        (exporter_service.Evaluator, "_evaluate", "evaluate"),
        (exporter_service.SnapshotPublisher, "publish", "publish"),
        (flow_tracker.FlowTracker, "update", "evaluate: state"),
        (flow_topics.FlowTopics, "judge", "evaluate: state: partitions"),
        (failover_readiness.GroupJudge, "judge", "evaluate: state: groups"),
        (flow_judge.SliceIndicators, "observe", "evaluate: state: indicators"),
        (flow_runner, "wanted_probes", "evaluate: wanted probes"),
        (flow_writer.FlowWriter, "write", "evaluate: state records and timeline"),
        (exporter_service, "limited_families", "publish: families"),
        (Renderer, "render", "publish: render"),
    ):
        meters.wrap(owner, method, name)
    _meter_parallel_requests()
    _keep_families()
    _report_arrivals()


def _meter_parallel_requests() -> None:
    """Offset requests in threads of their own; others are part of the reading thread's time."""
    plain = offset_requests._request
    metered = meters.timed(plain, "collect: requests")

    def request(*arguments: Any) -> Any:
        is_own = threading.current_thread().name.startswith("offsets")
        return (metered if is_own else plain)(*arguments)

    offset_requests._request = request  # type: ignore[assignment]  # observed from outside


def _keep_families() -> None:
    render = Renderer.render

    def keep_and_render(self: Renderer, found: Any) -> Any:
        if not wanted.is_set():
            return render(self, found)
        families[:] = found
        wanted.clear()
        kept.set()
        return render(self, families)

    Renderer.render = keep_and_render  # type: ignore[method-assign,assignment]  # observed from outside


def _report_arrivals() -> None:
    take = flow_runner.FlowRunner.take

    def reporting(self: Any, event: Any) -> None:
        if isinstance(event, Arrived):
            write_line(kind="arrived", sequence=event.sequence, at=event.at)
        take(self, event)

    flow_runner.FlowRunner.take = reporting  # type: ignore[method-assign]  # observed from outside


def report_cycles() -> None:
    """Write a line after each publication, with the CPU time since the last one."""
    publish = exporter_service.SnapshotPublisher.publish
    spent = time.process_time()

    def reporting(self: exporter_service.SnapshotPublisher) -> None:
        nonlocal spent
        publish(self)
        now = time.process_time()
        for report in self._flows.reports():
            timeline = report.timeline
            requests = self._flows.request_totals()
            write_line(
                kind="cycle",
                at=time.time(),
                ready=report.ready,
                series=self.snapshot.series,
                lag=report.lag_records,
                timeline_records=timeline.records_total if timeline else 0,
                timeline_bytes=timeline.bytes_total if timeline else 0,
                requests={"/".join(names): count for names, count in requests.items()},
                process=now - spent,
                parts={name: asdict(reading) for name, reading in meters.take().items()},
            )
        spent = time.process_time()

    exporter_service.SnapshotPublisher.publish = reporting  # type: ignore[method-assign]  # observed from outside


def compare_rendering() -> None:
    """CPU seconds of a first render and of prometheus_client for the same series."""
    # Imported here, so that it does not count as the exporter's memory.
    from exposition_baselines import client_registry
    from prometheus_client import generate_latest

    wanted.set()
    kept.wait(60)
    registry, left_out = client_registry(families)
    theirs = []
    for _ in range(3):
        gc.collect()
        started = time.thread_time()
        text = generate_latest(registry)
        theirs.append(time.thread_time() - started)
    started = time.thread_time()
    Renderer().render(families)
    write_line(
        kind="render",
        prometheus_client=sorted(theirs)[1],
        first=time.thread_time() - started,
        series=text.count(b"\n"),
        left_out=left_out,
    )


def main() -> None:
    config = load_config(Path(sys.argv[1]).read_text())
    instrument()
    report_cycles()
    with run_exporter(lambda: config) as (_service, server):
        write_line(kind="started", port=server.address.port, pid=os.getpid())
        for _ in sys.stdin:
            compare_rendering()


if __name__ == "__main__":
    main()
