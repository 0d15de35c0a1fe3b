"""An audit of 1 % by slices, compared with a census of the same records in the same session.

Both sides have equal records at equal offsets, so the target range of a slice is its own range.
Slices are scaled down with the records: 60 at 1 %. A second sample has one slice of 8 MB in each
partition and shows how far the fetches of such slices reach beyond their ends. Bytes are those that
the brokers wrote to sockets; memory is the peak of the JVM (driver and executors in one).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from scanned_records import PARTITIONS, TOPIC, cpu_seconds, fill

from mm2slo_audit.engine import judge
from mm2slo_audit.ingestion import land
from mm2slo_audit.scope import open_clients, read_scopes
from mm2slo_audit.scope.sliced_scopes import bound_scopes
from mm2slo_audit.session import SparkOptions, spark_session
from mm2slo_core.audit.audit_scope import SlicePlan, SourceSlice, Window
from mm2slo_core.audit.record_sample import SLICE_BYTES, Sample, SampleBy
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.source_slices import OffsetRange, plan_slices
from mm2slo_core.config import load_config
from mm2slo_lab import Engine, Lab, LabTopology

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from mm2slo_audit.scope import KafkaScopes
    from mm2slo_core.config import Config

RECORDS = 1_000_000
RECORD_BYTES = 290
SLICES = 60
ROUNDS = 3


class Cost(NamedTuple):
    seconds: float
    cpu: float
    sent: int
    """Bytes that both brokers sent."""


def with_slices(scopes: KafkaScopes, drawn: Sequence[SourceSlice]) -> KafkaScopes:
    (scope,) = scopes.scopes
    slices = tuple(each._replace(target=(each.start, each.end)) for each in drawn)
    return replace(scopes, scopes=(replace(scope, sampled=SlicePlan(slices, RECORD_BYTES)),))


def audit(spark: SparkSession, scopes: KafkaScopes, config: Config, sample: Sample) -> int:
    """Matched records."""
    with tempfile.TemporaryDirectory(prefix="mm2slo-slices-") as directory:
        landed = land(spark, bound_scopes(scopes), config, sample, directory, run="bench")
        (outcome,) = judge(
            spark, landed.records, landed.polls, landed.kafka_scopes.scopes, sample.of_records
        )
    return outcome.counts[Verdict.MATCHED]


def written(pid: int) -> int:
    """Bytes written by a process, to sockets as well."""
    lines = Path(f"/proc/{pid}/io").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def peak_megabytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=RECORDS, help="records per side")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--heap", help="of the JVM; that of an audit unless given")
    given = parser.parse_args()
    start = round(time.time() * 1000) - 6 * 3_600_000
    window = Window(start, start + given.records // 1000 + 1)
    with Lab.start(LabTopology(engine=Engine.NONE)) as lab:
        for alias in ("us", "eu"):
            fill(lab.cluster(alias), given.records, start)
        handles = [lab.cluster(alias).process.handle for alias in ("us", "eu")]
        brokers = [each.pid for each in handles if each is not None]
        flow = {"engine": "dual-produce", "policy": {"kind": "identity"}}
        config = load_config(lab.config_yaml(flow=flow))
        options = SparkOptions(master="local[2]", driver_memory=given.heap)
        with spark_session(options) as spark, open_clients(config) as clients:
            gateway = spark.sparkContext._gateway
            assert gateway is not None
            pid = gateway.proc.pid
            scopes = read_scopes(config, ["us->eu"], [TOPIC], window, clients)
            ranges = [
                OffsetRange(each.partition, each.read_from, each.end)
                for each in scopes.scopes[0].flows[0].partitions
            ]
            small = given.records * RECORD_BYTES // (100 * SLICES)
            one_percent = Sample(0.01, 0, SampleBy.SLICES, small)
            length = SLICE_BYTES // RECORD_BYTES
            whole = [
                SourceSlice(each.partition, each.partition, 10_000, 10_000 + length)
                for each in ranges
            ]
            runs = {
                "census": (scopes, Sample(1.0)),
                "1 % by slices": (
                    with_slices(scopes, plan_slices(TOPIC, ranges, RECORD_BYTES, one_percent)),
                    one_percent,
                ),
                f"{PARTITIONS} slices of 8 MB": (
                    with_slices(scopes, whole),
                    Sample(0.01, 0, SampleBy.SLICES),
                ),
            }
            costs: dict[str, list[Cost]] = {name: [] for name in runs}
            matched = {}
            for _ in range(given.rounds):
                for name, (read, sample) in runs.items():
                    sent, cpu, since = (
                        sum(map(written, brokers)),
                        cpu_seconds(pid),
                        time.monotonic(),
                    )
                    matched[name] = audit(spark, read, config, sample)
                    costs[name].append(
                        Cost(
                            time.monotonic() - since,
                            cpu_seconds(pid) - cpu,
                            sum(map(written, brokers)) - sent,
                        )
                    )
            peak = peak_megabytes(pid)
    census = costs["census"]
    for name, found in costs.items():
        seconds, cpu, sent = (min(each) for each in zip(*found, strict=True))
        print(
            f"{name:20} {matched[name]:9,} matched  {seconds:6.1f} s"
            f" ({seconds / min(each.seconds for each in census):.2f})  CPU {cpu:6.1f} s"
            f" ({cpu / min(each.cpu for each in census):.2f})  {sent / 1e6:8.1f} MB sent"
            f" ({sent / min(each.sent for each in census):.3f}), {sent / 2 / matched[name]:.0f} B"
            " per matched record and side"
        )
    print(f"peak resident {peak} MB")


if __name__ == "__main__":
    main()
