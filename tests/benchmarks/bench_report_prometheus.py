"""Cost of a report from Prometheus: 100 flows, 7 SLIs, 28 days of recorded steps.

Steps are written as blocks. The report's source counts the periods of a 28-day list: first, again
within that minute, and a minute later. Prometheus's CPU time is printed for each.
"""

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from zoneinfo import ZoneInfo

from bench_rules import INDICATORS, step_lines  # type: ignore[import-not-found]
from monitoring import own_metrics, prometheus, write_history_blocks

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.objectives.objective import Objective, Severity
from mm2slo_core.reporting.report_query import ReportQuery
from mm2slo_core.reporting.step_counts import MINUTE_MS, Indicator
from mm2slo_core.topology import Flow
from mm2slo_lab.lab_monitoring import Prometheus
from mm2slo_report.http_session import Server
from mm2slo_report.prometheus_api import PrometheusClient
from mm2slo_report.prometheus_source import PrometheusSource
from mm2slo_report.sli_source import SliSource

HOUR, DAY = 3_600, 86_400
CPU = "process_cpu_seconds_total"


def objectives(flows: int) -> list[Objective]:
    """All objectives of *flows* flows, over 28 days."""
    return [
        Objective(
            flow=Flow(f"c{n}", f"d{n % 10}"),
            key=SliKey(Sli(sli), tier),
            target=0.999,
            window=28.0 * DAY,
            max_severity=Severity.PAGE,
            owner="",
            channel="",
        )
        for n, (sli, tier) in product(range(flows), INDICATORS)
    ]


def measure(server: Prometheus, slos: Sequence[Objective], days: int, now: int) -> None:
    """Query as a list of objectives does, at once and again a minute later."""
    clock = [now - 5 * MINUTE_MS]
    client = PrometheusClient(Server(url=server.url), timeout=60.0)
    source = PrometheusSource(client, clock=lambda: clock[0])
    indicators = [Indicator(each.flow, each.key) for each in slos]

    def print_cost(name: str, started: float, before: float, more: str = "") -> None:
        spent = own_metrics(server, CPU)[""] - before
        print(f"{name:34}{time.monotonic() - started:8.3f} s, {spent:7.2f} s of Prometheus{more}")

    def ask(name: str, asked: SliSource) -> None:
        question = ReportQuery(objectives=tuple(slos), as_of=clock[0], zone=ZoneInfo("UTC"))
        started, before = time.monotonic(), own_metrics(server, CPU)[""]
        found = asked.counts(indicators, question.spans())
        asked.known_since(indicators)
        failed = sum(isinstance(each, Exception) for each in found.values())
        print_cost(name, started, before, f", {len(found) - failed} indicators, {failed} problems")

    ask("first answer", source)
    ask("the same minute", source)
    for _ in range(3):
        clock[0] += MINUTE_MS
        ask("a minute later", source)
    started, before = time.monotonic(), own_metrics(server, CPU)[""]
    minutes = source.steps(indicators[0], Span(clock[0] - days * DAY * 1000, clock[0]))
    print_cost("steps of one indicator", started, before, f", {len(minutes)} of them")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    memory = own_metrics(server, "process_resident_memory_bytes")[""] / 2**20
    print(f"memory of this process at most: {peak:.0f} MB; of Prometheus: {memory:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=100)
    parser.add_argument("--days", type=int, default=28)
    options = parser.parse_args()
    if shutil.which("promtool") is None:
        print("promtool is not installed: make prometheus")
        return
    slos = objectives(options.flows)
    with tempfile.TemporaryDirectory() as name:
        folder, started = Path(name), time.monotonic()
        now = int(time.time()) // HOUR * HOUR
        steps = partial(step_lines, options.flows)
        write_history_blocks(steps, now - options.days * DAY, now, folder)
        print(
            f"{len(slos)} indicators, {options.days} days of steps: "
            f"written in {time.monotonic() - started:.0f} s"
        )
        with prometheus(folder, {}) as server:
            measure(server, slos, options.days, now * 1000)


if __name__ == "__main__":
    main()
