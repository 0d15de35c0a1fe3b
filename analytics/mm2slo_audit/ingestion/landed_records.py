"""Lands both sides from Kafka in Parquet: hashes and offsets of the sampled records."""

from __future__ import annotations

import logging
import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from mm2slo_audit.engine.record_schema import RECORD_SCHEMA
from mm2slo_audit.ingestion.connector_rows import read_records
from mm2slo_audit.ingestion.connector_security import connector_options
from mm2slo_audit.ingestion.log_start_refresh import refresh_log_starts
from mm2slo_audit.ingestion.poll_rows import poll_frame
from mm2slo_audit.ingestion.read_errors import explain_read_error, extract_root_cause
from mm2slo_audit.ingestion.run_folders import (
    Manifest,
    delete_folder,
    describe_scope,
    make_folder,
    run_folder,
    write_manifest,
)
from mm2slo_audit.ingestion.scan_plan import group_by_flows, plan_scans
from mm2slo_audit.ingestion.scan_progress import ScanProgress
from mm2slo_audit.scope import open_clients
from mm2slo_audit.session.spark_errors import find_spark_problem
from mm2slo_core.config.notices import unapplied_client_settings
from mm2slo_kafka.kafka_errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from mm2slo_audit.scope import KafkaScopes
    from mm2slo_core.audit.audit_scope import NotAudited, UnitScope, Window
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.config import Config
    from mm2slo_kafka.cluster_client import ClusterClient

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
"""When retention deletes records during the read, the rest is read again."""
_ROWS_PER_FILE: Final = 2_000_000
_FILES_PER_CORE: Final = 4


@dataclass(frozen=True, slots=True)
class Landed:
    """Records and polls as the engine reads them."""

    records: DataFrame
    polls: DataFrame
    kafka_scopes: KafkaScopes
    """Scopes that could be read, with the offsets actually read; indexes do not change."""
    failed: Mapping[int, NotAudited]
    """Reasons by index of the unit."""
    folders: Mapping[int, str]
    """By index of the unit; units may share a folder."""
    rows: int
    offsets: int
    """Offsets read on both sides; an upper bound of the records."""
    bytes_read: int
    """Of keys and values on both sides; if not all records were landed, estimated from them."""


def land(
    spark: SparkSession,
    kafka_scopes: KafkaScopes,
    config: Config,
    sample: Sample,
    directory: str,
    *,
    run: str,
    window: Window | None = None,
    clients: Mapping[str, ClusterClient] | None = None,
    on_read: Callable[[int], None] = lambda _read: None,
) -> Landed:
    """Read *kafka_scopes* and land the records of *sample* under *directory* (see `run_folders`).

    *run* and *window* name the folder of this run (None: the window of the scopes); an existing one
    is replaced. *clients* read log starts if retention deletes records during the read; None: opens
    its own. *on_read* gets the number of offsets read so far. Payloads never leave Spark. Units
    that cannot be read are in `failed`. Raises UserError if the directory is not writable or a TLS
    file cannot be read, and Spark's exceptions about its disk and jars.
    """
    for sentence in unapplied_client_settings(config):
        logger.warning("%s", sentence)
    landing = _Landing(spark, kafka_scopes, config, sample, ScanProgress(on_read))
    landing.clients = clients
    folders: dict[int, str] = {}
    for name, scopes in group_by_flows(kafka_scopes.scopes).items():
        folder = run_folder(directory, name, window or scopes[0].window, run)
        delete_folder(spark, folder)
        make_folder(spark, folder)
        before = landing.rows, landing.offsets
        landed = landing.land(scopes, f"{folder}/records")
        if not landed:
            delete_folder(spark, folder)
            continue
        rows, offsets = landing.rows - before[0], landing.offsets - before[1]
        units = tuple(describe_scope(scope) for scope in landed)
        manifest = Manifest(run, rows, offsets, sample.rate, sample.salt, units)
        write_manifest(spark, folder, manifest)
        folders |= {scope.index: folder for scope in landed}
    records = empty_records(spark)
    if folders:
        paths = [f"{each}/records" for each in dict.fromkeys(folders.values())]
        records = spark.read.schema(RECORD_SCHEMA).parquet(*paths)
    return Landed(
        records=records,
        polls=poll_frame(spark, kafka_scopes.polls),
        kafka_scopes=replace(
            kafka_scopes,
            scopes=tuple(sorted(landing.scopes, key=lambda scope: scope.index)),
            not_audited=(*kafka_scopes.not_audited, *landing.failed.values()),
        ),
        failed=landing.failed,
        folders=folders,
        rows=landing.rows,
        offsets=landing.offsets,
        bytes_read=landing.bytes_read,
    )


class _Landing:
    """Lands the records of one run, and isolates the units that cannot be read."""

    def __init__(
        self,
        spark: SparkSession,
        kafka_scopes: KafkaScopes,
        config: Config,
        sample: Sample,
        progress: ScanProgress,
    ) -> None:
        self._spark = spark
        self._scoping = kafka_scopes
        self._config = config
        self._sample = sample
        self._progress = progress
        flows = {each.flow for scope in kafka_scopes.scopes for each in scope.flows}
        used = {alias for flow in flows for alias in (flow.source, flow.target)}
        self._kafka = {alias: connector_options(config.clusters[alias]) for alias in used}
        self._jobs = 0
        self.rows = 0
        """Rows landed so far."""
        self.offsets = 0
        """Offsets read so far."""
        self.bytes_read = 0
        self.scopes: list[UnitScope] = []
        self.failed: dict[int, NotAudited] = {}
        self.clients: Mapping[str, ClusterClient] | None = None

    def land(self, scopes: Sequence[UnitScope], path: str) -> list[UnitScope]:
        """Append the records of *scopes* to *path*; returns the scopes that could be read."""
        try:
            landed = self._read(scopes, path)
        except (PySparkException, Py4JJavaError) as error:
            message = str(error)
            if find_spark_problem(message):
                raise
            if len(scopes) > 1:
                # One topic may fail the read of all others.
                logger.warning(
                    "retrying %d topics in halves: %s", len(scopes), extract_root_cause(message)
                )
                half = len(scopes) // 2
                return [*self.land(scopes[:half], path), *self.land(scopes[half:], path)]
            self.failed[scopes[0].index] = explain_read_error(scopes[0].target_topic, message)
            return []
        self.scopes += landed
        return landed

    def _read(self, scopes: Sequence[UnitScope], path: str) -> list[UnitScope]:
        current = list(scopes)
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._write(current, path)
            except (PySparkException, Py4JJavaError) as error:
                moved = self._refreshed(current) if left else None
                if moved is None:
                    raise
                logger.warning(
                    "retention deleted records during the read: %s", extract_root_cause(str(error))
                )
                current = moved
            else:
                break
        return current

    def _refreshed(self, scopes: Sequence[UnitScope]) -> list[UnitScope] | None:
        try:
            with (
                nullcontext(self.clients) if self.clients else open_clients(self._config) as clients
            ):
                return refresh_log_starts(scopes, self._scoping.copies, clients)
        except KafkaOperationError as problem:
            logger.warning("cannot read log starts: %s", problem)
            return None

    def _write(self, scopes: Sequence[UnitScope], path: str) -> None:
        planned = tuple(plan_scans(scopes, self._scoping.isolations))
        offsets = sum(each.offsets for each in planned)
        frames = [
            read_records(self._spark, each, self._sample, self._kafka[each.cluster])
            for each in planned
        ]
        records = reduce(DataFrame.unionByName, frames) if frames else empty_records(self._spark)
        counted = Observation("landed")
        context = self._spark.sparkContext
        files = max(
            context.defaultParallelism * _FILES_PER_CORE,
            math.ceil(offsets * self._sample.rate / _ROWS_PER_FILE),
        )
        self._jobs += 1
        tasks = min(files, sum(len(each.ranges) for each in planned))
        with self._progress.track_job(
            context, f"mm2slo-landing-{id(self)}-{self._jobs}", offsets, tasks=tasks
        ):
            observed = records.coalesce(files).observe(
                counted, F.count(F.lit(1)).alias("rows"), F.sum("size").alias("bytes")
            )
            observed.write.mode("append").option("compression", "zstd").parquet(path)
        rows, size = int(counted.get["rows"]), int(counted.get["bytes"] or 0)
        self.rows += rows
        self.offsets += offsets
        complete = self._sample.census
        self.bytes_read += size if complete or not rows else round(size / rows * offsets)


def empty_records(spark: SparkSession) -> DataFrame:
    """An empty frame with the columns of `RECORD_SCHEMA`."""
    nothing = F.from_json(F.lit(None), RECORD_SCHEMA).alias("record")
    return spark.range(0).select(nothing).select("record.*")
