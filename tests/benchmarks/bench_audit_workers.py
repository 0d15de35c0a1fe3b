"""Census of the same Parquet files on Spark standalone clusters with one and two workers.

No broker runs. `taskset` restricts each worker process to one core. Time is that of the fastest
warm round of the complete judgement, or with `--match` of matching only, which needs little work
of the driver. With fewer than three cores the driver shares one with a worker, which reduces the
gain.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench_audit_match import EXCHANGE, NAMES  # type: ignore[import-not-found]
from large_audit_data import generate, scopes
from spark_standalone import spark_standalone

from mm2slo_audit.engine.judgement import judge
from mm2slo_audit.engine.match_tally import tally_matches
from mm2slo_audit.engine.unit_columns import POLL_SCHEMA, RECORD_SCHEMA, Units
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_core.audit.fingerprint import Sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Job = Callable[[SparkSession, DataFrame, DataFrame], dict[str, int]]

REACH = 1.6


@dataclass(frozen=True)
class Measured:
    """Result of one cluster."""

    cold: float
    warm: float
    counts: dict[str, int]


def whole(spark: SparkSession, records: DataFrame, polls: DataFrame) -> dict[str, int]:
    """Complete judgement: matching, second pass over faults, evidence, keys."""
    counts: dict[str, int] = {}
    for outcome in judge(spark, records, polls, scopes(), Sample(1.0)):
        for verdict, count in outcome.counts.items():
            counts[verdict] = counts.get(verdict, 0) + count
    return counts


def matching(_spark: SparkSession, records: DataFrame, polls: DataFrame) -> dict[str, int]:
    """Matching, order and bounds only, as in `bench_audit_match`: one exchange."""
    counts: dict[str, int] = {}
    for row in tally_matches(records, polls, Units(scopes()), EXCHANGE).collect():
        for name in NAMES[:6]:
            counts[name] = counts.get(name, 0) + getattr(row, name)
    return counts


def measure(workers: int, folder: Path, rounds: int, memory: str, job: Job) -> Measured:
    # A worker needs about 256 MiB outside the heap.
    conf = {"spark.executor.memory": memory, "spark.executor.cores": "1"}
    with (
        spark_standalone(workers, cores=1, memory="4g", pinned=True) as cluster,
        spark_session(SparkOptions(master=cluster.master, conf=conf)) as spark,
    ):
        wait_for_executors(spark, workers)
        records = spark.read.schema(RECORD_SCHEMA).parquet(str(folder / "records"))
        polls = spark.read.schema(POLL_SCHEMA).parquet(str(folder / "polls"))
        times, counts = [], dict[str, int]()
        for _ in range(rounds + 1):
            start = time.perf_counter()
            counts = job(spark, records, polls)
            times.append(time.perf_counter() - start)
    return Measured(times[0], min(times[1:]), counts)


def wait_for_executors(spark: SparkSession, count: int) -> None:
    """Wait until each worker has an executor; Spark also lists the driver."""
    status = spark.sparkContext._jsc.sc()
    while status.getExecutorMemoryStatus().size() < count + 1:
        time.sleep(0.1)


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=10_000_000, help="total of both sides")
    arguments.add_argument("--rounds", type=int, default=3, help="number of warm rounds")
    arguments.add_argument("--memory", default="2g", help="heap of an executor")
    arguments.add_argument("--folder", type=Path, help="keep generated data here")
    arguments.add_argument("--match", action="store_true", help="matching only")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="mm2slo-bench-") as scratch:
        folder = chosen.folder or Path(scratch)
        generate(folder, chosen.rows // 2)
        print(f"  {chosen.rows:,} rows, {os.cpu_count()} cores")
        found = {}
        for workers in (1, 2):
            found[workers] = measure(
                workers, folder, chosen.rounds, chosen.memory, matching if chosen.match else whole
            )
            each = found[workers]
            load = os.getloadavg()[0]
            print(
                f"  {workers} worker(s)   cold {each.cold:6.1f} s   warm {each.warm:6.1f} s"
                f"   (load {load:.1f})",
                flush=True,
            )
    assert found[1].counts == found[2].counts, found
    gain = found[1].warm / found[2].warm
    print(f"  two workers: {gain:.2f}x one   (goal: {REACH}x)")
    return 0 if gain >= REACH else 1


if __name__ == "__main__":
    sys.exit(main())
