"""Cost of the dashboards in Prometheus: 100 flows, 9 SLIs, 28 days.

Published and recorded series are written as blocks with their real density, as far back as a
dashboard reads. Then all queries run as from Grafana: all flows (one on the Flow dashboard), the
default time range, and 1,000 points unless a panel limits them.
"""

import argparse
import json
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from fleet_history import (
    PanelQuery,
    QueryCost,
    Shape,
    dashboard_queries,
    fleet_series,
    lookback,
    run_query,
)
from monitoring import own_metrics, prometheus
from tsdb import write_blocks

from mm2slo_core.catalogue.metric import Granularity
from mm2slo_lab.lab_monitoring import Prometheus

BOARDS = Path(__file__).parents[2] / "dashboards" / "generated" / "grafana" / "dashboards"
STEP = 300
DEAR_SECONDS, DEAR_SAMPLES = 0.2, 1_000_000


class Panel:
    """A panel's results; the first round is cold."""

    def __init__(self, rounds: Sequence[Sequence[QueryCost]]) -> None:
        times = [sum(answer.duration for answer in each) for each in rounds]
        self.cold, self.duration = times[0], statistics.median(times[1:])
        self.samples = sum(answer.samples for answer in rounds[0])
        self.peak = max(answer.peak for answer in rounds[0])
        self.series = sum(answer.series for answer in rounds[0])
        self.error = {answer.error for answer in rounds[0] if answer.error}

    @property
    def dear(self) -> bool:
        return bool(self.error) or self.duration > DEAR_SECONDS or self.samples > DEAR_SAMPLES

    def __str__(self) -> str:
        return (
            f"{self.duration * 1000:7.0f} ms {self.cold * 1000:7.0f} ms {self.samples:12,} "
            f"{self.peak:10,} {self.series:6}"
        )


def measure(server: Prometheus, queries: Sequence[PanelQuery], rounds: int) -> Mapping[str, Panel]:
    """Run each panel's queries sequentially, in several rounds."""
    answers: dict[str, list[list[QueryCost]]] = defaultdict(list)
    for _ in range(rounds + 1):
        found: dict[str, list[QueryCost]] = defaultdict(list)
        for asked in queries:
            found[asked.panel].append(run_query(server.url, asked))
        for panel, several in found.items():
            answers[panel].append(several)
    return {panel: Panel(several) for panel, several in answers.items()}


def report(title: str, panels: Mapping[str, Panel], *, each: bool) -> None:
    """Print a dashboard's total, its most expensive panels, and panels over the limits."""
    took, cold = (
        sum(getattr(one, name) for one in panels.values()) for name in ("duration", "cold")
    )
    samples = sum(one.samples for one in panels.values())
    print(f"{title:44}{took * 1000:7.0f} ms {cold * 1000:7.0f} ms {samples:12,}")
    slowest = max(panels, key=lambda name: panels[name].duration)
    widest = max(panels, key=lambda name: panels[name].samples)
    for name, panel in panels.items():
        marks = [
            *(["slowest"] if name == slowest else []),
            *(["most samples"] if name == widest else []),
            *(["dear"] if panel.dear else []),
            *panel.error,
        ]
        if each or marks:
            print(f"    {name[:40]:40}{panel}  {', '.join(marks)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=100)
    parser.add_argument("--granularity", type=Granularity.parse, default=Granularity.TOPIC)
    parser.add_argument(
        "--board", default="*", help="only dashboards with this uid; `*` is a wildcard"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="number of warm rounds after a cold one"
    )
    parser.add_argument("--all", action="store_true", help="print each panel")
    options = parser.parse_args()
    if shutil.which("prometheus") is None:
        print("Prometheus is not installed: make prometheus")
        return
    shape = Shape(flows=options.flows, granularity=options.granularity)
    boards = [
        json.loads(path.read_text("utf-8")) for path in sorted(BOARDS.glob(f"{options.board}.json"))
    ]
    now, started = int(time.time()) // STEP * STEP, time.monotonic()
    flow = dict(shape.flow_labels[0])["flow"]
    queries = {each["uid"]: list(dashboard_queries(each, flow, now)) for each in boards}
    back = lookback(asked for each in queries.values() for asked in each)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        series = list(fleet_series(shape, back, now))
        samples = write_blocks(folder / "data", series, now - int(max(back.values())), now)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        print(
            f"{options.flows} flows, {len(series):,} series, {samples:,} "
            f"samples, {size / 2**20:.0f} MB, written in {time.monotonic() - started:.0f} s"
        )
        with prometheus(folder, {}) as server:
            print(f"{'':44}{'warm':>10} {'cold':>10} {'samples':>12} {'peak':>10} {'series':>6}")
            for board in boards:
                found = measure(server, queries[board["uid"]], options.rounds)
                title = f"{board['uid']}, {board['time']['from'].removeprefix('now-')}"
                report(title, found, each=options.all)
            memory = own_metrics(server, "process_resident_memory_bytes")[""]
            print(f"resident memory of Prometheus: {memory / 2**20:.0f} MB")


if __name__ == "__main__":
    main()
