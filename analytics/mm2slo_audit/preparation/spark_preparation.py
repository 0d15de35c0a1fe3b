"""Tests Spark on this machine once, and archives its classes so that later runs start faster."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mm2slo_audit.run.spark_engine import tune_for_records
from mm2slo_audit.session import spark_session
from mm2slo_audit.session.class_archive import class_archive_path, delete_other_archives
from mm2slo_audit.session.java_runtime import Java, require_java
from mm2slo_core.user_errors import MissingExtraError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_audit.session import SparkOptions


@dataclass(frozen=True, slots=True)
class Preparation:
    """Result of a preparation."""

    spark: str
    java: Java
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
    from mm2slo_audit.preparation.self_test import run_self_test

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
