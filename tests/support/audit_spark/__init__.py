"""One Spark session for a whole test run, and frames of records.

A conftest imports `spark` and `pytest_collection_modifyitems`; the first test that uses the session
starts it.
"""

from __future__ import annotations

import atexit
import logging
import os
import tempfile
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa  # type: ignore[import-untyped]  # it has no types
import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyarrow import parquet

from mm2slo_audit.engine.unit_columns import POLL_SCHEMA, RECORD_SCHEMA, poll_row, record_row
from mm2slo_core.audit.audit_scope import ArrivalPoll, AuditRecord

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
    """Records as the audit lands them: in a Parquet file."""
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
