"""Size and speed of the SLI history of 100 flows x 7 SLIs in a SQLite store.

28 days are written. Then a step is stored as the recorder would, and the periods of an objective's
window are counted, cold (in a new process) and warm. The file may be in the page
cache in both cases.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC
from pathlib import Path

from minute_history import objective
from sqlalchemy import insert
from store_specs.sample_history import START

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.reporting.report_query import ReportQuery
from mm2slo_core.reporting.step_counts import MINUTE_MS, STEP_MS, Indicator, Tally
from mm2slo_core.topology import Flow
from mm2slo_store.open_store import engine_for, parse_address, write_transaction
from mm2slo_store.sli_history import CounterState
from mm2slo_store.store import Store
from mm2slo_store.store_schema import steps

COLD_MS = 150.0
SLIS = tuple(Sli)[:7]
_STEPS_A_DAY = 288


def all_indicators(flows: int) -> tuple[Indicator, ...]:
    return tuple(
        Indicator(Flow(f"cluster-{number}", "hub"), SliKey(sli))
        for number in range(flows)
        for sli in SLIS
    )


def question(flows: int, now: int) -> ReportQuery:
    """Query of all objectives; every fiftieth is breached."""
    chosen = [
        objective(0.99 if number % 50 else 0.99999, flow=each.flow, key=each.key)
        for number, each in enumerate(all_indicators(flows))
    ]
    return ReportQuery(objectives=tuple(chosen), as_of=now, zone=UTC)


def fill(path: Path, flows: int, days: int) -> int:
    """Write a history of *days*; returns its end."""
    drawn = random.Random(1)
    those = all_indicators(flows)
    with Store.open(path) as store:
        store.record_step(START, dict.fromkeys(those, Tally()))
    engine = engine_for(parse_address(path))
    for number in range(1, len(those) + 1):
        rows = [
            {
                "indicator": number,
                "end_at": START + step * STEP_MS,
                "good": 300.0 - (bad := float(drawn.random() < 0.005)),
                "bad": bad,
                "unknown": 0.0,
            }
            for step in range(1, days * _STEPS_A_DAY + 1)
        ]
        with write_transaction(engine) as connection:
            connection.execute(insert(steps), rows)
    engine.dispose()
    return START + days * _STEPS_A_DAY * STEP_MS


def measure(path: Path, flows: int, now: int, rounds: int) -> dict[str, list[float]]:
    """Durations of counting in ms; the first is cold."""
    asked = question(flows, now)
    spans, those = asked.spans(), asked.indicators
    times, cpu = [], []
    with Store.open(path) as store:
        for _ in range(rounds):
            start, spent = time.perf_counter(), time.process_time()
            store.span_counts(those, spans)
            times.append((time.perf_counter() - start) * 1e3)
            cpu.append((time.process_time() - spent) * 1e3)
    return {"wall": times, "cpu": cpu}


def record(path: Path, flows: int, end: int, rounds: int) -> list[float]:
    """Durations in ms of storing a step with the states of two replicas."""
    times = []
    counts = dict.fromkeys(all_indicators(flows), Tally(300, 300))
    with Store.open(path) as store:
        for number in range(rounds):
            at = end + number * MINUTE_MS
            states = [
                CounterState(f"http://{replica}/metrics", each, at, tally)
                for replica in "ab"
                for each, tally in counts.items()
            ]
            start = time.perf_counter()
            store.record_step(at - at % STEP_MS + STEP_MS, counts, states)
            times.append((time.perf_counter() - start) * 1e3)
    return times


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--flows", type=int, default=100)
    arguments.add_argument("--days", type=int, default=28)
    arguments.add_argument("--rounds", type=int, default=11)
    arguments.add_argument("--store", type=Path, help="keep the store here")
    arguments.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.measure:
        print(json.dumps(measure(chosen.store, chosen.flows, chosen.measure, chosen.rounds)))
        return
    with tempfile.TemporaryDirectory(prefix="mm2slo-bench-") as scratch:
        path = chosen.store or Path(scratch) / "slo.db"
        end = START + chosen.days * _STEPS_A_DAY * STEP_MS
        now = end - 23 * MINUTE_MS
        if not path.exists():
            start = time.perf_counter()
            fill(path, chosen.flows, chosen.days)
            print(f"  filled in {time.perf_counter() - start:.0f} s")
        megabytes = path.stat().st_size / 1e6
        rows = chosen.days * _STEPS_A_DAY * chosen.flows * len(SLIS)
        print(
            f"{chosen.flows} flows x {len(SLIS)} indicators x {chosen.days} days: {rows:,} rows, "
            f"{megabytes:.0f} MB, {megabytes * 1e6 / rows:.0f} bytes a row"
        )
        spans = len(question(1, now).spans())
        cold, warm, spent = [], [], []
        for _ in range(5):
            answer = subprocess.run(
                [
                    *(sys.executable, __file__, "--measure", str(now), "--store", str(path)),
                    *("--flows", str(chosen.flows), "--rounds", str(chosen.rounds)),
                ],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            found = json.loads(answer.stdout)
            cold.append(found["wall"][0])
            warm += found["wall"][1:]
            spent += found["cpu"][1:]
        print(
            f"  counts of {spans} spans: cold {statistics.median(cold):.0f} ms "
            f"(max {max(cold):.0f}; goal {COLD_MS:.0f}), warm {statistics.median(warm):.0f} ms "
            f"(max {max(warm):.0f}; CPU {statistics.median(spent):.0f})"
        )
        times = record(path, chosen.flows, end, 20)
        print(f"  a step is stored in {statistics.median(times):.0f} ms (max {max(times):.0f})")


if __name__ == "__main__":
    main()
