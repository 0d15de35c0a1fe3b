"""Runs the real exporter with meters around its parts; one line of JSON per cycle.

Commands on standard input: `render` compares rendering with prometheus_client on the series as
they are; the end of the input ends the process.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
import tracemalloc
from dataclasses import asdict
from pathlib import Path
from typing import Any

from large_flow.meters import Meters
from mm2slo_cli.exporter import serving
from mm2slo_core.config import load_config
from mm2slo_exporter.canary.events import Arrived
from mm2slo_exporter.exposition import Renderer
from mm2slo_exporter.readers import cluster, flow, internals, internals_store, offsets, probes
from mm2slo_exporter.service import evaluation, publishing, runner
from mm2slo_exporter.state import flow as state
from mm2slo_exporter.state import slis
from mm2slo_exporter.timeline import writer

meters = Meters()
said = threading.Lock()
families: list[Any] = []
wanted = threading.Event()
"""Set while a benchmark wants to see the families; else they are not kept: memory is measured."""
kept = threading.Event()


def say(**line: object) -> None:
    with said:
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


def instrument() -> None:
    for owner, method, name in (
        (flow.FlowReader, "read", "collect"),
        (offsets.SideReader, "_read_ends", "collect: ends"),
        (offsets.SideReader, "_read_starts", "collect: starts"),
        (internals_store.InternalsStore, "view", "collect: view of internal topics"),
        (internals.InternalsReader, "_poll_all", "tail internal topics"),
        (probes.ProbeReader, "read_wanted", "look at waiting records"),
        (cluster.ClusterReader, "_read_topics", "topics"),
        (cluster.ClusterReader, "_read_topic_ids", "topic ids"),
        (cluster.ClusterReader, "_read_configs", "topic configs"),
        (cluster.ClusterReader, "_read_groups", "groups"),
        (evaluation, "_evaluate", "evaluate"),
        (publishing.Publisher, "publish", "publish"),
        (state.FlowTracker, "update", "evaluate: state"),
        (state.FlowTracker, "_judge_topics", "evaluate: state: partitions"),
        (state.FlowTracker, "_judge_groups", "evaluate: state: groups"),
        (slis.SliceIndicators, "observe", "evaluate: state: indicators"),
        (runner, "wanted_probes", "evaluate: wanted probes"),
        (writer.TimelineWriter, "write", "evaluate: timeline"),
        (publishing, "limited_families", "publish: families"),
        (Renderer, "render", "publish: render"),
    ):
        meters.wrap(owner, method, name)
    _keep_families()
    _tell_arrivals()


def _keep_families() -> None:
    render = Renderer.render

    def keeping(self: Renderer, found: Any) -> Any:
        if not wanted.is_set():
            return render(self, found)
        families[:] = found
        wanted.clear()
        kept.set()
        return render(self, families)

    Renderer.render = keeping  # type: ignore[method-assign,assignment]  # observed from outside


def _tell_arrivals() -> None:
    take = runner.FlowRunner.take

    def telling(self: Any, event: Any) -> None:
        if isinstance(event, Arrived):
            say(kind="arrived", sequence=event.sequence, at=event.at)
        take(self, event)

    runner.FlowRunner.take = telling  # type: ignore[method-assign]  # observed from outside


def tell_cycles() -> None:
    """A line after each publication, with what was spent since the last one."""
    publish = publishing.Publisher.publish
    spent = time.process_time()

    def telling(self: publishing.Publisher) -> None:
        nonlocal spent
        publish(self)
        now = time.process_time()
        for report in self._flows.reports():
            timeline = report.timeline
            requests = self._flows.request_totals()
            say(
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

    publishing.Publisher.publish = telling  # type: ignore[method-assign]  # observed from outside


def compare_rendering() -> None:
    """Ours from nothing kept, and prometheus_client's, of the same series; CPU seconds."""
    # Not at the top: what the comparison needs is no part of the exporter's memory.
    from measuring import registry_of
    from prometheus_client import generate_latest

    wanted.set()
    kept.wait(60)
    registry, left_out = registry_of(families)
    theirs = []
    for _ in range(3):
        gc.collect()
        started = time.thread_time()
        text = generate_latest(registry)
        theirs.append(time.thread_time() - started)
    started = time.thread_time()
    Renderer().render(families)
    say(
        kind="render",
        prometheus_client=sorted(theirs)[1],
        first=time.thread_time() - started,
        series=text.count(b"\n"),
        left_out=left_out,
    )


def profile_evaluations(seconds: float) -> None:
    """Profile the evaluating thread for a while; the table goes to standard error."""
    import cProfile
    import io
    import pstats

    plain = evaluation.Evaluation.cycle
    profiler = cProfile.Profile(time.thread_time)

    def profiled(self: evaluation.Evaluation, patience: float) -> None:
        profiler.runcall(plain, self, patience)

    evaluation.Evaluation.cycle = profiled  # type: ignore[method-assign]  # for a while
    time.sleep(seconds)
    evaluation.Evaluation.cycle = plain  # type: ignore[method-assign]  # back
    out = io.StringIO()
    pstats.Stats(profiler, stream=out).sort_stats("tottime").print_stats(45)
    sys.stderr.write(out.getvalue())
    say(kind="profile")


def print_memory() -> None:
    """What Python holds, by line, to standard error; the process runs with PYTHONTRACEMALLOC=1."""
    for found in tracemalloc.take_snapshot().statistics("lineno")[:40]:
        sys.stderr.write(f"{found}\n")
    sys.stderr.write(f"traced now and at the peak: {tracemalloc.get_traced_memory()}\n")
    say(kind="memory")


def main() -> None:
    config = load_config(Path(sys.argv[1]).read_text())
    instrument()
    tell_cycles()
    with serving(lambda: config) as (_service, server):
        say(kind="started", port=server.address.port, pid=os.getpid())
        for command in sys.stdin:
            match command.split():
                case ["render"]:
                    compare_rendering()
                case ["memory"]:
                    print_memory()
                case ["profile", seconds]:
                    profile_evaluations(float(seconds))


if __name__ == "__main__":
    main()
