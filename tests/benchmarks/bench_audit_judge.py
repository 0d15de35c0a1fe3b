"""Complete judgement of landed records with faults: verdicts, evidence, order and keys.

Uses the rows of `bench_audit_match`: 0.3 % of records have a fault, in all partitions; with `--hot`
nearly all are in one. Prints wall time, and CPU time of the JVM.
"""

import argparse
import tempfile
import time
from pathlib import Path

from large_audit_data import generate, scopes
from process_figures import cpu_seconds, spark_pid

from mm2slo_audit.engine.judgement import judge
from mm2slo_audit.engine.match_tally import Parts
from mm2slo_audit.engine.unit_columns import POLL_SCHEMA, RECORD_SCHEMA
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import Verdict

_SURPLUS = (Verdict.DUPLICATE, Verdict.REPLAY)
_GONE = (Verdict.LOST, Verdict.OVERDUE, Verdict.PENDING, Verdict.MOVED, Verdict.ALTERED)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=20_000_000, help="total of both sides")
    arguments.add_argument("--rounds", type=int, default=1, help="number of warm rounds")
    arguments.add_argument("--heap", default="2g")
    arguments.add_argument("--hot", action="store_true", help="nearly all records in one partition")
    arguments.add_argument("--unsplit", action="store_true", help="do not split the hot partition")
    arguments.add_argument("--folder", type=Path, help="keep generated data here")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="mm2slo-bench-") as scratch:
        folder = chosen.folder or Path(scratch)
        truth = generate(folder, chosen.rows // 2, hot=chosen.hot)
        units = scopes(chosen.rows // 2, hot=chosen.hot)
        conf = {"spark.local.dir": str(folder / "spark")}
        options = SparkOptions(master="local[2]", driver_memory=chosen.heap, conf=conf)
        with spark_session(options) as spark:
            jvm = [spark_pid(spark)]
            records = spark.read.schema(RECORD_SCHEMA).parquet(str(folder / "records"))
            polls = spark.read.schema(POLL_SCHEMA).parquet(str(folder / "polls"))
            for number in range(chosen.rounds + 1):
                wall, spent = time.perf_counter(), cpu_seconds(jvm)
                split: Parts | None = {} if chosen.unsplit else None
                outcomes = judge(spark, records, polls, units, Sample(1.0), split=split)
                wall, spent = time.perf_counter() - wall, cpu_seconds(jvm) - spent
                name = f"warm {number}" if number else "cold"
                print(f"  {name:7} {wall:6.1f} s   CPU {spent:6.1f} s", flush=True)
        counts = {
            verdict: total
            for verdict in Verdict
            if (total := sum(each.counts.get(verdict, 0) for each in outcomes))
        }
        print("  " + ", ".join(f"{verdict} {total:,}" for verdict, total in counts.items()))
        assert sum(counts.get(each, 0) for each in _GONE) == truth["missing"], truth
        assert truth["duplicated"] * 0.95 < sum(counts.get(each, 0) for each in _SURPLUS)
        assert all(len(each.evidence) <= 100 * len(Verdict) for each in outcomes)


if __name__ == "__main__":
    main()
