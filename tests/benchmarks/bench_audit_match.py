"""Census of landed records by Spark, DuckDB and Polars: matching, order and latency bounds.

All read the same Parquet files and must return equal counts and latency cells. Each engine runs in
its own process; wall and CPU time are those of the fastest warm round.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from audit_matchers import Figures
from large_audit_data import MINUTES, PARTITIONS, TOPICS, generate

REACH = 2.6
ENGINES = ("duckdb", "spark", "polars")


def measure(engine: str, folder: Path, heap: str, rounds: int) -> dict[str, Any]:
    """Run in this process; the first round is cold."""
    run, cpu = importlib.import_module(f"audit_matchers.{engine}_matcher").prepare(folder, heap)
    times = []
    figures: Figures = {}
    for _ in range(rounds + 1):
        wall, spent = time.perf_counter(), cpu()
        figures = run()
        times.append((time.perf_counter() - wall, cpu() - spent))
    return {
        "cold": times[0][0],
        "wall": min(wall for wall, _ in times[1:]),
        "cpu": min(spent for _, spent in times[1:]),
        "figures": figures,
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=20_000_000, help="total of both sides")
    arguments.add_argument("--rounds", type=int, default=3, help="number of warm rounds")
    arguments.add_argument("--heap", default="4g")
    arguments.add_argument("--engines", default=",".join(ENGINES))
    arguments.add_argument("--folder", type=Path, help="keep generated data here")
    arguments.add_argument("--measure", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.measure:
        found = measure(chosen.measure, chosen.folder, chosen.heap, chosen.rounds)
        print(json.dumps(found))
        return
    with tempfile.TemporaryDirectory(prefix="mm2slo-bench-") as scratch:
        folder = chosen.folder or Path(scratch)
        truth = generate(folder, chosen.rows // 2)
        print(f"{chosen.rows:,} rows: {TOPICS} topics of {PARTITIONS} partitions, {MINUTES} min")
        results = {}
        for engine in chosen.engines.split(","):
            answer = subprocess.run(
                [
                    *(sys.executable, __file__, "--measure", engine, "--folder", str(folder)),
                    *("--heap", chosen.heap, "--rounds", str(chosen.rounds)),
                ],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
            found = results[engine] = json.loads(answer.stdout.splitlines()[-1])
            print(
                f"  {engine:8} cold {found['cold']:6.1f} s   warm {found['wall']:6.2f} s   "
                f"CPU {found['cpu']:6.2f} s",
                flush=True,
            )
        first = next(iter(results.values()))["figures"]
        print(f"  {first}")
        assert all(each["figures"] == first for each in results.values()), results
        for name, count in truth.items():
            assert first[name] == count, (name, first[name], count)
        if {"spark", "duckdb"} <= results.keys():
            wall, cpu = (
                results["spark"][each] / results["duckdb"][each] for each in ("wall", "cpu")
            )
            print(f"  Spark / DuckDB: {wall:.2f}x wall, {cpu:.2f}x CPU   (goal: {REACH}x)")


if __name__ == "__main__":
    main()
