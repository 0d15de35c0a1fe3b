"""The way of an audited record: from the bytes that Spark's Kafka connector reads to the report.

The test prints the product files that took part. Only the connector, which needs brokers, and the
survey of the clusters, which no record passes, are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import audit_spark
import pytest
from audit_runs.fake_ports import CONFIG
from called_files import called_files

from mm2slo_audit.audit_ports import RunReport, UnitReport
from mm2slo_audit.audit_run import compute_stated_bounds
from mm2slo_audit.report.report_file import write_report
from mm2slo_audit.scope.scope_assembly import Isolations, RunScope
from mm2slo_audit.spark import connector_rows
from mm2slo_audit.spark.scan_plan import ScanRange
from mm2slo_audit.spark.spark_engine import SparkEngine
from mm2slo_core.audit.audit_conclusion import conclude
from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import RunHeader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

START = 1_700_000_000_000
WINDOW = Window(START, START + 1_000)
BESIDE = ("core/mm2slo_core/config/", "core/mm2slo_kafka/")
"""No record passes these: settings of the connector, and the thread that calls the JVM."""

MOST_FILES = 24
US_EU = Flow("us", "eu")


def row(topic: str, offset: int, record: int) -> str:
    """A record as the connector yields it, as literals: Spark needs no Python worker for them."""
    key, value, trace = (
        f"X'{text.encode().hex()}'"
        for text in (f"key-{record}", f'{{"order": {record}}}', f"trace-{record}")
    )
    return (
        f"({key}, {value}, '{topic}', 0, {offset}L, timestamp_millis({START + record}), 0,"
        f" array(named_struct('key', 'trace', 'value', {trace})))"
    )


# Record 2 has no copy, record 4 has two.
ROWS = {
    "orders": [row("orders", record, record) for record in range(6)],
    "us.orders": [
        row("us.orders", offset, record) for offset, record in enumerate((0, 1, 3, 4, 4, 5))
    ],
}
SCOPE = UnitScope(
    index=0,
    target_topic="us.orders",
    flows=(FlowScope(US_EU, "orders", (SourcePartition(0, 0, 0, 6, 6),)),),
    partitions=(TargetPartition(0, 0, 0, 6),),
    window=WINDOW,
    identity=Identity(),
    taken_at=WINDOW.end,
)
SCOPED = RunScope(
    (SCOPE,),
    polls=tuple(
        ArrivalPoll(0, 0, side, 0, end=6, earliest=START + at, latest=START + at + 20)
        for side, at in ((Side.SOURCE, 10), (Side.TARGET, 40))
    ),
    isolations=(Isolations(("read_uncommitted",), "read_uncommitted"),),
    copies=({},),
)
"""As the survey of both clusters would find it."""


def read_rows(
    spark: SparkSession, kafka: Mapping[str, str], ranges: Sequence[ScanRange], *, headers: bool
) -> DataFrame:
    """In the place of `connector_rows.range_rows`, which asks brokers."""
    assert kafka["bootstrap.servers"]
    assert headers
    found = [each for wanted in ranges for each in ROWS[wanted.topic][wanted.start : wanted.end]]
    return spark.sql(
        f"SELECT * FROM VALUES {', '.join(found)}"  # noqa: S608 - literals of this file
        " AS t(key, value, topic, partition, offset, timestamp, timestampType, headers)"
    )


def test_audited_record_passes_few_files_from_kafka_to_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_rows, "range_rows", read_rows)
    engine = SparkEngine(audit_spark.start(), CONFIG, str(tmp_path / "records"))
    target, sample = tmp_path / "report.json", Sample(1.0)
    with called_files() as called:
        landed = engine.land(SCOPED, sample, "run", lambda _read: None)
        outcomes = landed.judge(landed.scopes, sample)
        units = [UnitReport(each, compute_stated_bounds(each, sample)) for each in outcomes]
        report = RunReport(
            header=RunHeader("run", (US_EU,), WINDOW, WINDOW.end, 1.0, 0, "none"),
            sample=sample,
            finished_at=WINDOW.end,
            conclusion=conclude(outcomes, landed.failed, sample=sample),
            units=tuple(units),
            bytes_read=landed.bytes_read,
        )
        write_report(target, report)
    (topic,) = json.loads(target.read_text())["topics"]
    counts = {verdict: number for verdict, number in topic["counts"].items() if number}
    assert counts == {"matched": 5, "lost": 1, "duplicate": 1}
    assert topic["end_to_end"]["records"] == 5
    files = [each for each in called if not each.startswith(BESIDE)]
    print(f"\n{len(files)} product files:", *files, sep="\n")
    assert len(files) <= MOST_FILES
