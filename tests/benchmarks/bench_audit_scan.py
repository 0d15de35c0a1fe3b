"""Landing of a 1 % audit, compared with a bare scan of the same records by the connector.

The bare scan hashes key and value and filters by a hash, with Kafka's defaults and with the audit's
consumer settings. The audit runs all of `land`: headers, fingerprints, both strata, Parquet. Both
run in one session on local[2]; rates are of the fastest round, CPU time is that of the JVM.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from process_figures import cpu_seconds, spark_pid

from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_audit.scope.scope_assembly import RunScope
from mm2slo_audit.scope.scope_reader import read_scopes
from mm2slo_audit.spark.connector_rows import CONSUMER_OPTIONS, connector_options
from mm2slo_audit.spark.landed_records import LandedFrames, land_records
from mm2slo_audit.spark.spark_properties import SparkOptions
from mm2slo_audit.spark.spark_session import spark_session
from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.config.config_model import Config
from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.running_lab import Lab

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPIC, PARTITIONS = "scanned", 6
VALUE = bytes(range(256)) + b"-" * 32
HEADERS: list[tuple[str, str | bytes | None]] = [("trace", b"0123456789abcdef")]
RECORDS = 5_000_000
"""Records per side."""
REACH = 0.75
ROUNDS = 4


def fill(broker: Broker, count: int, start: int) -> None:
    """Records of about 315 bytes, equal on both clusters; timestamps follow from numbers."""
    broker.admin.create_topic(TOPIC, PARTITIONS)
    settings = {
        # Retried batches must not change places: slices need equal offsets on both sides.
        "enable.idempotence": "true",
        "linger.ms": "50",
        "batch.size": "1000000",
        "queue.buffering.max.messages": "500000",
    }
    producer = Producer({**broker.librdkafka(), **settings})
    for number in range(count):
        while True:
            try:
                producer.produce(
                    TOPIC,
                    value=VALUE[: 280 + number % 8],
                    key=b"k%d" % (number % 400_000),
                    partition=number % PARTITIONS,
                    timestamp=start + number // 1000,
                    headers=HEADERS,
                )
            except BufferError:
                producer.poll(0.05)
            else:
                break
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def bare(
    spark: SparkSession,
    scoped: RunScope,
    config: Config,
    *,
    headers: bool,
    tuned: bool = False,
) -> None:
    from pyspark.sql import functions as F

    def side(alias: str) -> DataFrame:
        (scope,) = scoped.scopes
        partitions = scope.flows[0].partitions if alias == "us" else scope.partitions
        tasks = sum(-(-each.end // 1_500_000) for each in partitions)
        settings = connector_options(config.clusters[alias]) | (CONSUMER_OPTIONS if tuned else {})
        rows = (
            spark.read.format("kafka")
            .options(**{f"kafka.{name}": value for name, value in settings.items()})
            .options(subscribe=TOPIC, includeHeaders=str(headers).lower(), minPartitions=tasks)
            .load()
        )
        hashed = rows.select(
            F.xxhash64("key").alias("kh"),
            F.xxhash64("value", *(["headers"] if headers else [])).alias("fp"),
        )
        return hashed.where(F.pmod("fp", F.lit(100)) == 0)

    side("us").union(side("eu")).write.format("noop").mode("overwrite").save()


def audit(spark: SparkSession, scoped: RunScope, config: Config) -> LandedFrames:
    with tempfile.TemporaryDirectory(prefix="mm2slo-scan-") as directory:
        return land_records(spark, scoped, config, Sample(0.01), directory, run="bench")


def measured(what: Callable[[], object], pid: int) -> tuple[float, float]:
    """Wall and CPU seconds."""
    cpu, since = cpu_seconds([pid]), time.monotonic()
    what()
    return time.monotonic() - since, cpu_seconds([pid]) - cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="records per side")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    start = round(time.time() * 1000) - 6 * 3_600_000
    window = Window(start, start + given.records // 1000 + 1)
    topology = LabTopology(engine=LabEngine.NONE)
    with Lab.start(topology) as lab:
        for alias in ("us", "eu"):
            fill(lab.cluster(alias), given.records, start)
        print(f"{given.records:,} records of about 315 bytes on each side, {PARTITIONS} partitions")
        flow = {"engine": "dual-produce", "policy": {"kind": "identity"}}
        config = load_config(lab.config_yaml(flow=flow))
        options = SparkOptions(master="local[2]", driver_memory="2g")
        with spark_session(options) as spark, open_clients(config) as clients:
            pid = spark_pid(spark)
            scoped = read_scopes(config, ["us->eu"], [TOPIC], window, clients)
            assert scoped.planned == 2 * given.records, scoped
            landed = audit(spark, scoped, config)
            print(f"landed {landed.rows:,} of {landed.offsets:,}")
            runs: dict[str, Callable[[], object]] = {
                "bare, no headers": lambda: bare(spark, scoped, config, headers=False),
                "bare, with headers": lambda: bare(spark, scoped, config, headers=True),
                "bare, headers, tuned": lambda: bare(
                    spark, scoped, config, headers=True, tuned=True
                ),
                "audit 1 %": lambda: audit(spark, scoped, config),
            }
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
            for _ in range(given.rounds):
                for name, run in runs.items():
                    times[name].append(measured(run, pid))
    for name, each in times.items():
        wall = min(one for one, _cpu in each)
        cpu = min(one for _wall, one in each)
        middle = statistics.median(one for one, _cpu in each)
        print(
            f"{name:20} {scoped.planned / wall / 1e6:6.3f} M records/s"
            f" (quickest {wall:.1f} s, median {middle:.1f} s; CPU {cpu:.1f} s)"
        )
    for name in list(times)[:-1]:
        walls = [min(one for one, _cpu in times[which]) for which in (name, "audit 1 %")]
        cpus = [min(one for _wall, one in times[which]) for which in (name, "audit 1 %")]
        print(
            f"audit at {walls[0] / walls[1]:.0%} of the rate of {name}"
            f" (by CPU {cpus[0] / cpus[1]:.0%}); asked: {REACH:.0%}"
        )


if __name__ == "__main__":
    main()
