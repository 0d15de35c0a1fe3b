"""The job in Spark, with the plan of the audit."""

import os
import time
from pathlib import Path

from large_audit_data import scopes
from pyspark.sql import SparkSession

from audit_matchers import NAMES, Figures, Prepared
from mm2slo_audit.engine.match_tally import tally_matches, unpack_row
from mm2slo_audit.engine.unit_columns import Units
from mm2slo_audit.spark.spark_properties import SESSION_PROPERTIES

PARTITIONS = 64
_TICKS = os.sysconf("SC_CLK_TCK")


def prepare(folder: Path, heap: str) -> Prepared:
    """See the package."""

    builder = SparkSession.builder.master("local[2]").appName("audit match")
    settings = {
        **SESSION_PROPERTIES,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": heap,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.local.dir": str(folder / "spark"),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    records = spark.read.parquet(str(folder / "records"))
    polls = spark.read.parquet(str(folder / "polls"))
    units = Units(scopes())
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.proc.pid

    def run() -> Figures:
        figures = dict.fromkeys(NAMES, 0)
        for row in tally_matches(records, polls, units, PARTITIONS).collect():
            for name in NAMES[:6]:
                figures[name] += getattr(row, name)
            end_to_end, transfer, _ = unpack_row(row)
            for kind, latency in (("e", end_to_end), ("x", transfer)):
                for (lower, upper), count in latency.cells.items():
                    figures[f"{kind}_n"] += count
                    figures[f"{kind}_weight"] += count * ((lower or 0) * 1_000 + upper)
        return figures

    return run, lambda: _cpu(jvm) + time.process_time()


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
