"""Census of landed records by Spark and DuckDB: matching, order and latency bounds.

Both read the same Parquet files and must return equal counts and latency cells. Each engine runs in
its own process; wall and CPU time are those of the fastest warm round.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from large_audit_data import MINUTES, PARTITIONS, TOPICS, WINDOW, generate, scopes
from process_figures import cpu_seconds, spark_pid

from mm2slo_audit.engine.match_tally import tally_matches, unpack_row
from mm2slo_audit.engine.unit_columns import Units
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session

REACH = 2.6
EXCHANGE = 64
"""Partitions that Spark matches in."""
Figures = dict[str, int]
Prepared = tuple[Callable[[], Figures], Callable[[], float]]
"""A job, and a clock of the CPU time that its engine has used so far, in seconds."""
NAMES = (
    *("matched", "source_bytes", "missing", "duplicated", "unexplained", "overtaken"),
    *("e_n", "e_weight", "x_n", "x_weight"),
)
"""Result of a job: counts; of end-to-end (e) and transfer (x) cells the records and a weighted
sum as a checksum."""

GROUPS = """
select topic, partition, ts, fp,
    count(*) filter (side = 0) as ns, count(*) filter (side = 1) as nd,
    min("offset") filter (side = 0) as s, min("offset") filter (side = 1) as t,
    sum(size) filter (side = 0) as bytes
from records group by topic, partition, ts, fp
"""
CELL = """
case when {upper} < 0 then -2 else
    (ceil(16 * log2(greatest({lower}, 1)) - 2e-13)::bigint + 1) * 1024
    + ceil(16 * log2(greatest({upper}, 1)) - 2e-13)::bigint end
"""

# A copy is compared with the previous one, which is cheaper here than with all later ones; where
# only single records are late, as in the data, both counts are equal.
QUERY = f"""
with groups as materialized ({GROUPS}),
matched as materialized (
    select *, lag(t) over (partition by topic, partition order by s) > t as overtaken
    from groups where ns > 0 and nd > 0
),
first_polls as (
    select topic, partition, side, "end", min(latest) as latest,
        arg_min(earliest, latest) as earliest
    from polls group by all
),
s_polls as (select * from first_polls where side = 0),
t_polls as (select * from first_polls where side = 1),
on_source as (
    select m.*, p.earliest as s_earliest, p.latest as s_latest
    from matched m asof left join s_polls p
    on m.topic = p.topic and m.partition = p.partition and m.s < p."end"
),
bracketed as (
    select m.*, p.earliest as t_earliest, p.latest as t_latest
    from on_source m asof left join t_polls p
    on m.topic = p.topic and m.partition = p.partition and m.t < p."end"
),
celled as (
    select topic, partition, {CELL.format(lower="t_earliest - ts", upper="t_latest - ts")} as e,
        {CELL.format(lower="t_earliest - s_latest", upper="t_latest - s_earliest")} as x
    from bracketed where ts >= {WINDOW[0]} and ts < {WINDOW[1]}
),
cells as (select topic, partition, e, x, count(*) as n from celled group by all)
select
    (select sum(n) from cells)::bigint,
    (select sum(bytes) from groups where ts >= {WINDOW[0]} and ts < {WINDOW[1]})::bigint,
    (select count(*) from groups where ns > nd and ts >= {WINDOW[0]} and ts < {WINDOW[1]}),
    (select count(*) from groups where nd > ns and ns > 0),
    (select count(*) from groups where ns = 0 and ts >= {WINDOW[0]} and ts < {WINDOW[1]}),
    (select count(*) from matched where overtaken),
    (select sum(n) from cells where e >= 0)::bigint,
    (select sum(n * ((e // 1024 - 1) * 1000 + e % 1024)) from cells where e >= 0)::bigint,
    (select sum(n) from cells where x >= 0)::bigint,
    (select sum(n * ((x // 1024 - 1) * 1000 + x % 1024)) from cells where x >= 0)::bigint
"""  # noqa: S608 - nothing but the text above goes in


@contextmanager
def duckdb_job(folder: Path, heap: str) -> Iterator[Prepared]:
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    connection.execute(f"set memory_limit = '{heap.upper()}B'")
    connection.execute(f"set temp_directory = '{folder / 'duckdb'}'")
    connection.execute("set preserve_insertion_order = false")
    for each in ("records", "polls"):
        connection.read_parquet(f"{folder / each}/*.parquet").create_view(each)

    def run() -> Figures:
        row = connection.execute(QUERY).fetchone()
        assert row is not None
        return dict(zip(NAMES, row, strict=True))

    yield run, time.process_time


@contextmanager
def spark_job(folder: Path, heap: str) -> Iterator[Prepared]:
    """The same with the plan of the audit."""
    conf = {"spark.local.dir": str(folder / "spark")}
    options = SparkOptions(master="local[2]", driver_memory=heap, conf=conf)
    with spark_session(options) as spark:
        records = spark.read.parquet(str(folder / "records"))
        polls = spark.read.parquet(str(folder / "polls"))
        units = Units(scopes())
        jvm = spark_pid(spark)

        def run() -> Figures:
            figures = dict.fromkeys(NAMES, 0)
            for row in tally_matches(records, polls, units, EXCHANGE).collect():
                for name in NAMES[:6]:
                    figures[name] += getattr(row, name)
                end_to_end, transfer, _ = unpack_row(row)
                for kind, latency in (("e", end_to_end), ("x", transfer)):
                    for (lower, upper), count in latency.cells.items():
                        figures[f"{kind}_n"] += count
                        figures[f"{kind}_weight"] += count * ((lower or 0) * 1_000 + upper)
            return figures

        yield run, lambda: cpu_seconds([jvm]) + time.process_time()


ENGINES = {"duckdb": duckdb_job, "spark": spark_job}


def measure(engine: str, folder: Path, heap: str, rounds: int) -> dict[str, Any]:
    """Run in this process; the first round is cold."""
    times = []
    figures: Figures = {}
    with ENGINES[engine](folder, heap) as (run, cpu):
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
