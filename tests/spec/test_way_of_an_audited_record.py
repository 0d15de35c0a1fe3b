"""The way of an audited record: from the bytes that Spark's Kafka connector reads to the report.

The test prints the product files that took part. Only the connector, which needs brokers, and the
survey of the clusters, which no record passes, are replaced.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import audit_spark
import pytest
from audit_runs import CONFIG, Clock, RecordedProgress

import mm2slo_audit
from mm2slo_audit.audit_options import AuditOptions, TimeSpan
from mm2slo_audit.audit_ports import AuditPorts
from mm2slo_audit.audit_run import audit
from mm2slo_audit.report.report_file import write_report
from mm2slo_audit.scope.scope_assembly import Isolations, RunScope
from mm2slo_audit.spark import connector_rows
from mm2slo_audit.spark.scan_plan import ScanRange
from mm2slo_audit.spark.spark_engine import SparkEngine
from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow
from mm2slo_store.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

START = 1_700_000_000_000
WINDOW = Window(START, START + 1_000)
ROOT = Path(mm2slo_audit.__file__).parents[2]
ROOMS = ("analytics", "core", "exporter")
MOST_FILES = 24

SCHEMA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp,"
    " timestampType int, headers array<struct<key: string, value: binary>>"
)
"""Of a row of the connector with `includeHeaders`."""


def row(topic: str, offset: int, record: int) -> tuple[object, ...]:
    """A record as the connector yields it."""
    sent = datetime.fromtimestamp((START + record) / 1000, UTC)
    key, value = f"key-{record}".encode(), f'{{"order": {record}}}'.encode()
    headers = [("trace", f"trace-{record}".encode())]
    return bytearray(key), bytearray(value), topic, 0, offset, sent, 0, headers


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
    flows=(FlowScope(Flow("us", "eu"), "orders", (SourcePartition(0, 0, 0, 6, 6),)),),
    partitions=(TargetPartition(0, 0, 0, 6),),
    window=WINDOW,
    identity=Identity(),
    taken_at=WINDOW.end,
)


def read_rows(
    spark: SparkSession, kafka: Mapping[str, str], ranges: Sequence[ScanRange], *, headers: bool
) -> DataFrame:
    """In the place of `connector_rows.range_rows`, which asks brokers."""
    assert kafka["bootstrap.servers"]
    assert headers
    found = [each for wanted in ranges for each in ROWS[wanted.topic][wanted.start : wanted.end]]
    return spark.createDataFrame(found, SCHEMA)


class SurveyedScope:
    """The scope of the records above, as the survey of both clusters would find it."""

    def list_topics(
        self, flows: Sequence[FlowConfig], topics: Sequence[str]
    ) -> Collection[tuple[Flow, str]]:
        raise NotImplementedError

    def read_scopes(
        self, flows: Sequence[FlowConfig], topics: Sequence[str], window: Window
    ) -> RunScope:
        polls = tuple(
            ArrivalPoll(0, 0, side, 0, end=6, earliest=START + at, latest=START + at + 20)
            for side, at in ((Side.SOURCE, 10), (Side.TARGET, 40))
        )
        isolation = Isolations(("read_uncommitted",), "read_uncommitted")
        return RunScope((SCOPE,), polls=polls, isolations=(isolation,), copies=({},))


@contextmanager
def recorded_files() -> Iterator[set[str]]:
    """Product files with a function that was called, in any thread; imports do not count."""
    found: set[str] = set()
    packages = tuple(str(ROOT / room) for room in ROOMS)

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        code = frame.f_code
        if code.co_name != "<module>" and code.co_filename.startswith(packages):
            found.add(str(Path(code.co_filename).relative_to(ROOT)))

    former = sys.gettrace()
    threading.settrace(note)
    sys.settrace(note)
    try:
        yield found
    finally:
        sys.settrace(former)
        threading.settrace(former)  # type: ignore[arg-type]  # None: no tracing


def test_audited_record_passes_few_files_from_kafka_to_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector_rows, "range_rows", read_rows)
    spark, target = audit_spark.start(), tmp_path / "report.json"
    engine = SparkEngine(spark, CONFIG, str(tmp_path / "records"))
    with Store.open(tmp_path / "audit.db") as store:
        ports = AuditPorts(
            scope_reader=SurveyedScope(),
            engine=type("Ready", (), {"get": lambda _self, _records: engine})(),
            store=store,
            clock=Clock(WINDOW.end),
            progress=RecordedProgress(),
        )
        span = TimeSpan(start=WINDOW.start, end=WINDOW.end)
        with recorded_files() as files:
            write_report(target, audit(CONFIG, AuditOptions(span=span), ports))
    (topic,) = json.loads(target.read_text())["topics"]
    counts = {verdict: number for verdict, number in topic["counts"].items() if number}
    assert counts == {"matched": 5, "lost": 1, "duplicate": 1}
    print(f"\n{len(files)} product files:", *sorted(files), sep="\n")
    assert len(files) <= MOST_FILES
