"""Cost of the generated rules in Prometheus: 100 flows, 7 SLIs, 28 days of history.

Steps of 28 days and counters of the last hour are written as blocks. Prometheus scrapes two
replicas of the exporter and evaluates the rules at production intervals; its own metrics have the
duration of each group.
"""

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from monitoring import own_metrics, prometheus, write_history_blocks
from recording_server import Answer, RecordingServer, Request

from mm2slo_alerts.alert_files import ALERT_RULES, RECORDING_RULES, generated
from mm2slo_core.catalogue.flow_metrics import (
    FLOW_INFO,
    FLOW_STATE,
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)
from mm2slo_core.catalogue.prometheus_series import BAD_STEP, DUE_STEP, EVENTS_STEP, UNKNOWN_STEP
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_lab.lab_monitoring import Prometheus

STEP, SCRAPE, HOUR, DAY = 300, 15, 3_600, 86_400
INTERVAL = 30
"""Seconds: the shortest evaluation interval; costs are given per interval."""
BAD, UNKNOWN = 0.005, 0.01
"""Shares of steps with such an event."""
INDICATORS = (
    ("availability", "all"),
    ("latency", "10s"),
    ("latency", "60s"),
    ("data_freshness", "default"),
    ("completeness", "all"),
    ("uniqueness", "all"),
    ("checkpoint_freshness", "all"),
)


def flows(count: int) -> list[str]:
    """Labels of *count* flows."""
    return [f'flow="c{n}->d{n % 10}",source="c{n}",target="d{n % 10}"' for n in range(count)]


def indicators(count: int) -> list[str]:
    """Labels of each indicator of *count* flows."""
    return [
        f'{flow},sli="{sli}",tier="{tier}"'
        for flow, (sli, tier) in product(flows(count), INDICATORS)
    ]


def step_lines(count: int, start: int, end: int) -> Iterator[str]:
    """Recorded steps of [start, end); a random share has bad events."""
    draw = random.Random(start).random
    for labels in indicators(count):
        for at in range(start, end, STEP):
            yield f"{EVENTS_STEP.name}{{{labels}}} {295 + draw() * 10:.6g} {at}"
            yield f"{BAD_STEP.name}{{{labels}}} {int(draw() < BAD)} {at}"
            yield f"{UNKNOWN_STEP.name}{{{labels}}} {int(draw() < UNKNOWN)} {at}"
            yield f"{DUE_STEP.name}{{{labels}}} 1 {at}"


def counter_lines(count: int, start: int, end: int) -> Iterator[str]:
    """Counters of two replicas in [start, end)."""
    for labels, replica in product(indicators(count), ("a", "b")):
        given = f'{labels},job="mm2slo",instance="{replica}"'
        for at in range(start, end, SCRAPE):
            for name, value in counters(at):
                yield f"{name}{{{given}}} {value} {at}"


def counters(at: float) -> tuple[tuple[str, int], ...]:
    """Counter values at a time: one event per second, one of 50,000 bad, one of 5,000 unknown."""
    events = int(at) % 100_000_000
    return (
        (SLI_EVENTS_TOTAL.name, events),
        (SLI_GOOD_EVENTS_TOTAL.name, events - events // 50_000),
        (SLI_UNKNOWN_EVENTS_TOTAL.name, events // 5000),
    )


def write_history(count: int, days: int, folder: Path, now: int) -> None:
    """Write blocks of steps until now, and of counters in the last hour."""
    today = now // DAY * DAY

    def lines(start: int, end: int) -> Iterator[str]:
        yield from step_lines(count, start, end)
        if start >= today:
            yield from counter_lines(count, now - HOUR - 2 * SCRAPE, now)

    write_history_blocks(lines, now - days * DAY, now, folder)


def page(count: int) -> str:
    """The current counters of *count* flows, as all replicas expose them."""
    values = counters(time.time())
    lines = [f"{name}{{{each}}} {value}" for name, value in values for each in indicators(count)]
    for flow in flows(count):
        lines.append(f"{FLOW_INFO.name}{{{flow}}} 1")
        lines.extend(
            f'{FLOW_STATE.name}{{{flow},state="{state}"}} {int(state == "running")}'
            for state in FlowStateName
        )
    return "\n".join([*lines, ""])


def single(server: Prometheus, expression: str) -> float:
    """Value of an expression with one series; 0 without a series."""
    found = server.query(expression)
    return float(found[0]["value"][1]) if found else 0.0


def report(server: Prometheus) -> None:
    """Print the cost of each group, the slowest group, and the total per interval."""
    intervals = own_metrics(server, "prometheus_rule_group_interval_seconds")
    last = own_metrics(server, "prometheus_rule_group_last_duration_seconds")
    total = 0.0
    print(f"{'group':28}{'every':>7}{'took':>10}{'per 30 s':>11}")
    for group, seconds in sorted(last.items(), key=lambda one: -one[1]):
        share = seconds * INTERVAL / intervals[group]
        total += share
        print(f"{group:28}{intervals[group]:>6.0f}s{seconds:>9.3f}s{share:>10.4f}s")
    print(f"slowest group: {max(last, key=lambda group: last[group])}")
    print(f"all groups: {total:.3f} s of evaluation per interval of {INTERVAL} s")


def measure(server: Prometheus, seconds: float) -> None:
    """Run the rules, then print their cost and the number of recorded series."""
    started, cpu = time.monotonic(), own_metrics(server, "process_cpu_seconds_total")[""]
    time.sleep(seconds)
    spent = own_metrics(server, "process_cpu_seconds_total")[""] - cpu
    took = time.monotonic() - started
    report(server)
    failed = sum(own_metrics(server, "prometheus_rule_evaluation_failures_total").values())
    missed = sum(own_metrics(server, "prometheus_rule_group_iterations_missed_total").values())
    print(f"failed evaluations: {failed:.0f}, missed ones: {missed:.0f}")
    print(f"Prometheus itself, scrapes included: {spent * INTERVAL / took:.3f} s of CPU per 30 s")
    memory = own_metrics(server, "process_resident_memory_bytes")[""]
    print(f"resident memory of Prometheus: {memory / 2**20:.0f} MB")
    for name in ("flow:mm2_slo_burn:ratio1h", "flow:mm2_slo_budget_remaining:ratio"):
        print(f"{name}: {single(server, f'count(last_over_time({name}[10m]))'):.0f} series")
    steps = single(server, "max(count_over_time(flow:mm2_sli_events:step5m[28d]))")
    print(f"steps of one indicator within 28 days: {steps:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=100)
    parser.add_argument("--days", type=int, default=28)
    parser.add_argument("--seconds", type=float, default=400.0, help="how long to run")
    options = parser.parse_args()
    if shutil.which("promtool") is None:
        print("promtool is not installed: make prometheus")
        return
    rules = {Path(name).name: text for name, text in generated().items() if name in RULES}

    def serve(_request: Request) -> Answer:
        return Answer(body=page(options.flows), content_type="text/plain; version=0.0.4")

    with tempfile.TemporaryDirectory() as name, RecordingServer(serve) as exporter:
        folder, started = Path(name), time.monotonic()
        write_history(options.flows, options.days, folder, int(time.time()) // STEP * STEP)
        print(
            f"{options.flows} flows x {len(INDICATORS)} indicators, {options.days} days of steps: "
            f"written in {time.monotonic() - started:.0f} s"
        )
        # Two names of one address are two instances.
        address = exporter.address.removeprefix("http://")
        replicas = [address, address.replace("127.0.0.1", "localhost")]
        with prometheus(folder, {"mm2slo": replicas}, rules=rules) as server:
            measure(server, options.seconds)


RULES = (RECORDING_RULES, ALERT_RULES)

if __name__ == "__main__":
    main()
