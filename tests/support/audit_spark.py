"""One Spark session for a whole test run, and frames of records.

A conftest imports `spark` and `pytest_collection_modifyitems`; the first test that uses the session
starts it.
"""

from __future__ import annotations

import atexit
import logging
import os
import random
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyarrow import parquet

from mm2slo_audit.engine.unit_columns import POLL_SCHEMA, RECORD_SCHEMA, poll_row, record_row
from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    AuditRecord,
    Comparison,
    Cut,
    FlowScope,
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_SETTINGS = {
    "spark.master": "local[2]",
    "spark.app.name": "mm2slo tests",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "tinyint": pa.int8(),
    "boolean": pa.bool_(),
    "array<bigint>": pa.list_(pa.int64()),
}
_started: list[SparkSession] = []


def start() -> SparkSession:
    """The session of this process: small, quiet and fast to start."""
    if not _started:
        from pyspark.sql import SparkSession

        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        folder = tempfile.TemporaryDirectory(prefix="mm2slo-spark-")
        builder = SparkSession.builder
        for name, value in _SETTINGS.items():
            builder = builder.config(name, value)
        builder = builder.config("spark.local.dir", folder.name)
        builder = builder.config("spark.sql.warehouse.dir", f"{folder.name}/warehouse")
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        logging.getLogger("py4j").setLevel(logging.ERROR)

        def stop() -> None:
            # Tests of sessions may have stopped the JVM of the process.
            with suppress(ConnectionError, Py4JError):
                session.stop()
            folder.cleanup()

        atexit.register(stop)
        _started.append(session)
    return _started[0]


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The session of the test run."""
    return start()


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """PySpark leaves the socket of each `collect` to the garbage collector."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def record_frame(spark: SparkSession, records: Iterable[AuditRecord]) -> DataFrame:
    """Records in the columns of the engine, read from a Parquet file."""
    return _landed(spark, [record_row(each) for each in records], RECORD_SCHEMA)


def poll_frame(spark: SparkSession, polls: Iterable[ArrivalPoll]) -> DataFrame:
    """Polls as the audit lands them."""
    return _landed(spark, [poll_row(each) for each in polls], POLL_SCHEMA)


def _landed(spark: SparkSession, rows: Sequence[tuple[object, ...]], schema: str) -> DataFrame:
    """Rows in a file: those of `createDataFrame` pass a Python worker on each read."""
    fields = [field.split() for field in schema.split(", ")]
    columns = zip(*rows, strict=True) if rows else ((),) * len(fields)
    table = pa.table(
        {
            name: pa.array(column, _ARROW[kind])
            for (name, kind), column in zip(fields, columns, strict=True)
        }
    )
    file = Path(spark.conf.get("spark.local.dir") or ".") / f"{uuid.uuid4().hex}.parquet"
    parquet.write_table(table, file)
    return spark.read.schema(schema).parquet(str(file))


_TIMES = range(1_000, 1_012)
_WINDOW = Window(1_002, 1_010)


@dataclass(frozen=True, slots=True)
class RandomUnit:
    """The data to judge one unit."""

    scope: UnitScope
    records: tuple[AuditRecord, ...]
    polls: tuple[ArrivalPoll, ...]


def random_unit(seed: int, index: int, comparison: Comparison) -> RandomUnit:
    """A random unit, deterministic by *seed*."""
    draw = random.Random(seed)
    flows = draw.choice((1, 1, 2))
    plain = draw.random() < 0.6
    scope = UnitScope(
        index=index,
        target_topic=f"unit-{index}",
        flows=tuple(_flow(number, draw, plain=plain) for number in range(flows)),
        partitions=tuple(
            TargetPartition(number, 0, 0, 100, draw.choice((0, 0, 8))) for number in range(2)
        ),
        window=_WINDOW,
        identity=replace(
            Identity() if plain else Identity(timestamp=draw.random() < 0.5),
            must_change=("header:a", "value")[: seed % 3],
        ),
        comparison=comparison,
        target_time=_time_type(draw, plain=plain),
        taken_at=1_012,
        max_pending=6,
        tombstones_kept=(0, 5, 9)[seed // 3 % 3],
    )
    scope = replace(scope, earlier=_earlier(scope, random.Random(seed)))
    contents = draw.choice((3, 12, 40))
    keyed = draw.choice((2, 6))
    records, polls = [], []
    for side, flow in [(Side.SOURCE, flow) for flow in range(flows)] + [(Side.TARGET, 0)]:
        for partition in range(2):
            offset = draw.randrange(5)
            for _ in range(draw.randrange(15)):
                records.append(
                    _record(draw, scope, side, (flow, partition, offset), (contents, keyed))
                )
                offset += draw.choice((1, 1, 1, 2))
            polls += _polls(draw, index, side, (flow, partition))
    return RandomUnit(scope, tuple(records), tuple(polls))


def bucketed_unit(seed: int, index: int) -> RandomUnit:
    """A random unit with one flow, ignored timestamps and random cuts."""
    for attempt in count(seed * 1_000):
        unit = random_unit(attempt, index, Comparison.RECORDS)
        if len(unit.scope.flows) == 1 and not unit.scope.identity.timestamp:
            break
    draw = random.Random(seed)
    (flow,) = unit.scope.flows
    partitions = tuple(replace(each, cuts=_cuts(draw)) for each in flow.partitions)
    flows = (replace(flow, partitions=partitions),)
    return replace(unit, scope=replace(unit.scope, flows=flows))


def _earlier(scope: UnitScope, draw: random.Random) -> tuple[UnitScope, ...]:
    """Audits that read less of both sides."""
    return tuple(
        replace(
            scope,
            flows=tuple(
                replace(
                    flow,
                    partitions=tuple(
                        replace(each, end=draw.randrange(4, 16), next_offset=draw.choice((None, 7)))
                        for each in flow.partitions
                    ),
                )
                for flow in scope.flows[: draw.choice((1, 2))]
            ),
            partitions=tuple(replace(each, end=draw.randrange(12)) for each in scope.partitions),
            window=Window(draw.choice((1_000, 1_004)), 1_009),
            taken_at=draw.choice((1_009, 1_013)),
        )
        for _ in range(draw.choice((0, 1, 2)))
    )


def _cuts(draw: random.Random) -> tuple[Cut, ...]:
    cuts = draw.choice((0, 1, 5))
    edges = (sorted(draw.sample(range(1, 16), cuts)) for _side in Side)
    return tuple(map(Cut, *edges))


def _flow(number: int, draw: random.Random, *, plain: bool) -> FlowScope:
    return FlowScope(
        flow=Flow(f"s{number}", "t"),
        source_topic="topic",
        partitions=tuple(
            SourcePartition(
                partition=each,
                log_start=0,
                read_from=0,
                end=100,
                next_offset=draw.choice((None, 5, 12)),
                known_from=draw.choice((0, 0, 4)),
                expired=draw.choice((0, 3)),
            )
            for each in range(2)
        ),
        source_time=_time_type(draw, plain=plain),
        has_positions=draw.random() < 0.8,
    )


def _time_type(draw: random.Random, *, plain: bool) -> TimestampType:
    drawn = 1.0 if plain else draw.random()
    if drawn < 0.15:
        return TimestampType.MIXED
    return TimestampType.LOG_APPEND if drawn < 0.4 else TimestampType.CREATE


def _record(
    draw: random.Random,
    scope: UnitScope,
    side: Side,
    place: tuple[int, int, int],
    variety: tuple[int, int],
) -> AuditRecord:
    contents, keys = variety
    flow, partition, offset = place
    masks = [(part, *place, side) for part, _ in enumerate(scope.identity.must_change)]
    content = draw.randrange(contents)
    # Like real hashes: equal fingerprints mean equal keys, times and sizes, if identified.
    of_content = random.Random(content)
    timestamp = of_content.choice(_TIMES)
    if not scope.identity.timestamp or draw.random() < 0.1:
        timestamp = draw.choice(_TIMES)
    key = of_content.choice((None, *range(keys)))
    return AuditRecord(
        topic=scope.index,
        flow=flow,
        side=side,
        partition=partition,
        offset=offset,
        timestamp=timestamp,
        fingerprint=content - contents // 2,
        key_hash=None if key is None else key - 2,
        size=content * 3,
        tombstone=of_content.random() < 0.3,
        masked=tuple(_contents(masks)),
    )


def _contents(masks: Iterable[object]) -> Iterator[int]:
    """Hashes of contents: up to two of each part."""
    for part, seed in enumerate(masks):
        drawn = random.Random(f"{seed}")
        yield from drawn.sample(range(10 * part, 10 * part + 4), drawn.choice((0, 1, 1, 2)))


def _polls(
    draw: random.Random, index: int, side: Side, place: tuple[int, int]
) -> list[ArrivalPoll]:
    flow, partition = place
    polls = []
    earliest, end, now = None, 0, 1_000
    for _ in range(draw.randrange(8)):
        end += draw.choice((0, 1, 4))
        now += draw.randrange(1, 6)
        polls.append(ArrivalPoll(index, flow, side, partition, end, earliest, now))
        earliest = draw.choice((now - 1, None))
    return polls
