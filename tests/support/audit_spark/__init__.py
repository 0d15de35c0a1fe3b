"""One Spark session for a whole test run, and records in it.

A conftest imports `spark` and `pytest_collection_modifyitems`; the first test that asks for the
session starts it.
"""

from __future__ import annotations

import atexit
import logging
import os
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types

from mm2slo_audit.engine.schema import POLL_SCHEMA, RECORD_SCHEMA, poll_row, record_row

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from mm2slo_core.audit.record import ArrivalPoll, AuditRecord

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
_started: list[SparkSession] = []


def start() -> SparkSession:
    """The session of this process; small, quiet and fast to start."""
    if not _started:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - most runs of tests need none

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
            # Tests of sessions end the one JVM that a process has.
            with suppress(ConnectionError, Py4JError):
                session.stop()
            folder.cleanup()

        atexit.register(stop)
        _started.append(session)
    return _started[0]


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """The one session of the run."""
    return start()


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """PySpark leaves the socket of each `collect` to the garbage collector."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


def record_frame(spark: SparkSession, records: Iterable[AuditRecord]) -> DataFrame:
    """Records as the audit lands them."""
    return spark.createDataFrame([record_row(each) for each in records], RECORD_SCHEMA)


def poll_frame(spark: SparkSession, polls: Iterable[ArrivalPoll]) -> DataFrame:
    """Polls as the audit lands them."""
    return spark.createDataFrame([poll_row(each) for each in polls], POLL_SCHEMA)
