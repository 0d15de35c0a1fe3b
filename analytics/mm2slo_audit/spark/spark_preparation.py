"""Tests Spark on this machine once, and archives its classes so that later runs start faster."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mm2slo_audit.spark.spark_engine import tune_for_records
from mm2slo_audit.spark.spark_properties import CONNECTORS, SparkOptions
from mm2slo_audit.spark.spark_session import (
    JavaRuntime,
    class_archive_path,
    delete_other_archives,
    require_java,
    spark_session,
)
from mm2slo_core.user_errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Preparation:
    """Result of a preparation."""

    spark: str
    java: JavaRuntime
    archive: Path | None
    """None: this Java wrote no archive; audits run without it."""
    size: int
    """Size of the archive in bytes."""


def prepare(options: SparkOptions, on_progress: Callable[[str], None]) -> Preparation:
    """Fetch the connector's jars, audit generated records, archive Spark's classes.

    Raises UserError if Java, jars or Spark are missing or fail, MissingExtraError without pyspark.
    """
    try:
        import pyspark
    except ImportError:
        raise MissingExtraError(module="pyspark", extra="audit") from None
    if not options.local:
        raise UserError(
            f"the master is {options.master}; prepare supports only local masters, where Spark"
            " starts with each run: omit --master, or set it to local[*]"
        )
    from mm2slo_audit.spark.spark_self_test import run_self_test

    java = require_java()
    archive = class_archive_path(java, Path(pyspark.__file__).parent)
    _make_folder(archive.parent)
    with tempfile.TemporaryDirectory(prefix="prepare-", dir=archive.parent) as folder:
        written = Path(folder, archive.name)
        on_progress("starting Spark, fetching the Kafka connector if necessary")
        with spark_session(tune_for_records(options, records=0), archive_to=written) as spark:
            on_progress("auditing generated records")
            run_self_test(spark, Path(folder).as_uri())
            version = spark.version
            on_progress("archiving Spark's classes")
        if not written.is_file():
            return Preparation(version, java, None, 0)
        written.replace(archive)
    delete_other_archives(archive)
    return Preparation(version, java, archive, archive.stat().st_size)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot create {folder} ({error.strerror}): set XDG_CACHE_HOME to a writable folder"
        ) from None
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder} is not writable: set XDG_CACHE_HOME to a writable folder")


_MIB: Final = 1 << 20


def write_summary(console: Console, done: Preparation) -> None:
    """Print one line each about Spark, the self-test and the class archive."""
    for line in summary_lines(done):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def summary_lines(done: Preparation) -> tuple[str, ...]:
    java = done.java.version.partition("\n")[0]
    if done.archive is None:
        archive = f"no class archive: {done.java.path} wrote none; audits run without it"
    else:
        archive = f"class archive: {done.archive} ({done.size / _MIB:.0f} MiB); audits map it"
    tested = (f"{line}.x with {each.version}" for line, each in CONNECTORS.items())
    return (
        f"Spark {done.spark} runs on {java} ({done.java.path})",
        f"tested with Kafka connectors: Spark {', '.join(tested)}",
        "self-test passed: the audit found the lost and the duplicate record",
        archive,
    )
