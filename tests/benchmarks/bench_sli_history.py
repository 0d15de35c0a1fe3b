"""Size and speed of the SLI history of 100 flows x 7 SLIs in a SQLite store.

At least 28 days are written as the recorder would. Then one minute is recorded, and the periods of
an objective's window are counted, cold (in a new process) and warm. The file may be in the page
cache in both cases.
"""

from __future__ import annotations

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

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from minute_history import objective
from sqlalchemy import insert
from store_specs.sample_history import HOUR, START

from mm2slo_core.reporting.minute_counts import MINUTE_MS, Indicator, Tally
from mm2slo_core.reporting.report_query import ReportQuery
from mm2slo_core.sli_counters import Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_store import CounterState, Store
from mm2slo_store.engine import engine_for, write_transaction
from mm2slo_store.sli_history.naming import numbered
from mm2slo_store.sli_history.packing import packed
from mm2slo_store.sli_history.tables import hours, indicators
from mm2slo_store.store_address import parse_address

COLD_MS = 150.0
SLIS = tuple(Sli)[:7]


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
    """Write a history of *days*; returns its last minute."""
    drawn = random.Random(1)
    with Store.open(path):
        pass
    address = parse_address(path)
    engine = engine_for(address)
    first = START // HOUR
    with write_transaction(engine) as connection:
        numbers = tuple(numbered(connection, all_indicators(flows)).values())
        connection.execute(indicators.update().values(first_at=START, detailed_from=first))
    totals = dict.fromkeys(numbers, Tally())
    for day in range(days):
        rows = []
        for hour in range(24 * day, 24 * day + 24):
            for number in numbers:
                base = totals[number]
                good, total = base.good, base.total
                after = []
                for _ in range(60):
                    counted = drawn.choice((59, 60, 60, 60, 61))
                    total += counted
                    good += counted - (drawn.random() < 0.001)
                    after.append(Tally(good, total, base.unknown))
                totals[number] = after[-1]
                rows.append(
                    {
                        "hour": first + hour,
                        "indicator": number,
                        **base._asdict(),
                        "minutes_before": 60 * hour,
                        "minutes": (1 << 60) - 1,
                        "folded": False,
                        "growths": packed(base, after),
                    }
                )
        with write_transaction(engine) as connection:
            connection.execute(insert(hours), rows)
    engine.dispose()
    return START + days * 24 * HOUR


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


def record(path: Path, now: int, minutes: int) -> list[float]:
    """Durations in ms of recording minutes with the states of two replicas."""
    times = []
    with Store.open(path) as store:
        tallies = store.latest_tallies()
        for number in range(minutes):
            at = now + number * MINUTE_MS
            tallies = {
                each: Tally(good + 60, total + 60, unknown)
                for each, (good, total, unknown) in tallies.items()
            }
            states = [
                CounterState(f"http://{replica}/metrics", each, at, tally)
                for replica in "ab"
                for each, tally in tallies.items()
            ]
            start = time.perf_counter()
            store.record_minute(at, tallies, tallies.keys(), states)
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
        end = START + chosen.days * 24 * HOUR
        now = end - 23 * MINUTE_MS
        if not path.exists():
            start = time.perf_counter()
            fill(path, chosen.flows, chosen.days)
            print(f"  filled in {time.perf_counter() - start:.0f} s")
        megabytes = path.stat().st_size / 1e6
        rows = chosen.days * 24 * chosen.flows * len(SLIS)
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
        first, *others = record(path, end, 20)
        print(
            f"  a minute is recorded in {statistics.median(others):.0f} ms, the first of an hour "
            f"in {first:.0f} ms (max {max(others):.0f})"
        )


if __name__ == "__main__":
    main()
