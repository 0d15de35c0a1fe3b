"""Lands both sides from Kafka in Parquet: hashes and offsets of the sampled records, and polls.

Retention may delete records during the read: then log starts are read again, scopes are bounded by
them, and the rest is read again. A record keeps the timestamp type that it was written with, so
copies may have timestamps of the target although the topic has CreateTime now: then they are read
again, without timestamps in the fingerprints. Polls become a table without a Python worker.
"""

from __future__ import annotations

import json
import logging
import math
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import groupby
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it has no types
from pyspark import SparkContext, StatusTracker
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from mm2slo_audit.engine.judgement import judge
from mm2slo_audit.engine.unit_columns import RECORD_SCHEMA, SOURCE, TARGET, side_code
from mm2slo_audit.scope.audit_units import not_audited_after
from mm2slo_audit.scope.cluster_readings import open_clients
from mm2slo_audit.scope.scope_assembly import (
    CopyKey,
    CopyMap,
    RunScope,
    Starts,
    apply_log_starts,
    partitions_of,
    without_timestamps,
)
from mm2slo_audit.spark.connector_rows import connector_options, read_records
from mm2slo_audit.spark.run_folders import (
    RunManifest,
    delete_folder,
    describe_scope,
    make_folder,
    run_folder,
    write_manifest,
)
from mm2slo_audit.spark.scan_plan import group_by_flows, plan_scans
from mm2slo_audit.spark.spark_errors import (
    explain_read_error,
    extract_root_cause,
    find_spark_problem,
    one_line_errors,
)
from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    NotAudited,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import UnitOutcome
from mm2slo_core.config.config_model import Config, unapplied_client_settings
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading
from mm2slo_store.audit_rows import RunDirectory

logger = logging.getLogger(__name__)

_ATTEMPTS: Final = 5
"""When retention deletes records during the read, the rest is read again."""
_ROWS_PER_FILE: Final = 2_000_000
_FILES_PER_CORE: Final = 4


@dataclass(frozen=True, slots=True)
class LandedFrames:
    """Records and polls as the engine reads them."""

    records: DataFrame
    polls: DataFrame | None
    """None: no polls."""
    scopes: tuple[UnitScope, ...]
    """Those that could be read, with the offsets actually read; indexes do not change."""
    failed: tuple[NotAudited, ...] = ()
    directories: Mapping[int, RunDirectory] = field(default_factory=dict)
    rows: int = 0
    offsets: int = 0
    """Offsets read on both sides; an upper bound of the records."""
    poll_rows: int = 0
    bytes_read: int = 0
    """Of keys and values on both sides; if not all records were landed, estimated from them."""

    def judge(self, scopes: Sequence[UnitScope], sample: Sample) -> Sequence[UnitOutcome]:
        """See `LandedRecords.judge`."""
        with one_line_errors("judging"):
            return judge(
                self.records.sparkSession,
                self.records,
                self.polls,
                scopes,
                sample,
                poll_rows=self.poll_rows,
            )


def land_records(
    spark: SparkSession,
    scoped: RunScope,
    config: Config,
    sample: Sample,
    directory: str,
    *,
    run: str,
    window: Window | None = None,
    clients: Mapping[str, ClusterClient] | None = None,
    on_read: Callable[[int], None] = lambda _read: None,
) -> LandedFrames:
    """Read *scoped* and land the records of *sample* under *directory* (see `run_folders`).

    *run* and *window* name the folder of this run (None: the window of the scopes); an existing one
    is replaced. *clients* read log starts if retention deletes records during the read; None: opens
    its own. *on_read* gets the number of offsets read so far. Payloads never leave Spark. Units
    that cannot be read are in `failed`. Raises UserError if the directory is not writable or a TLS
    file cannot be read, and Spark's exceptions about its disk and jars.
    """
    for sentence in unapplied_client_settings(config):
        logger.warning("%s", sentence)
    landing = _Landing(spark, scoped, config, sample, ScanProgress(on_read))
    landing.clients = clients
    directories: dict[int, RunDirectory] = {}
    for name, scopes in group_by_flows(scoped.scopes).items():
        folder = run_folder(directory, name, window or scopes[0].window, run)
        delete_folder(spark, folder)
        make_folder(spark, folder)
        before = landing.rows, landing.offsets
        landed = landing.land_all(scopes, folder)
        if not landed:
            delete_folder(spark, folder)
            continue
        rows, offsets = landing.rows - before[0], landing.offsets - before[1]
        units = tuple(describe_scope(scope) for scope in landed)
        manifest = RunManifest(run, rows, offsets, sample.rate, sample.salt, units)
        write_manifest(spark, folder, manifest)
        directory_read = RunDirectory(folder, rows=rows)
        directories |= {scope.index: directory_read for scope in landed}
    records = empty_records(spark)
    if directories:
        paths = [f"{each.path}/records" for each in dict.fromkeys(directories.values())]
        records = read_landed(spark, paths)
    return LandedFrames(
        records=records,
        polls=poll_frame(spark, scoped.polls) if scoped.polls else None,
        poll_rows=len(scoped.polls),
        scopes=tuple(
            sorted(map(landing.with_record_times, landing.scopes), key=lambda scope: scope.index)
        ),
        failed=tuple(landing.failed),
        directories=directories,
        rows=landing.rows,
        offsets=landing.offsets,
        bytes_read=landing.bytes_read,
    )


class _Landing:
    """Lands the records of one run, and isolates the units that cannot be read."""

    def __init__(
        self,
        spark: SparkSession,
        scoped: RunScope,
        config: Config,
        sample: Sample,
        progress: ScanProgress,
    ) -> None:
        self._spark = spark
        self._scoped = scoped
        self._config = config
        self._sample = sample
        self._progress = progress
        flows = {each.flow for scope in scoped.scopes for each in scope.flows}
        used = {alias for flow in flows for alias in (flow.source, flow.target)}
        self._kafka = {alias: connector_options(config.clusters[alias]) for alias in used}
        self._jobs = 0
        self.rows = 0
        """Rows landed so far."""
        self.offsets = 0
        """Offsets read so far."""
        self.bytes_read = 0
        self.scopes: list[UnitScope] = []
        self.failed: list[NotAudited] = []
        self._unreachable: dict[tuple[str, str | None], KafkaOperationError] = {}
        """Clusters (None) and topics that stopped responding during the read, with the error."""
        self.clients: Mapping[str, ClusterClient] | None = None
        self._other_times: set[tuple[int, int, int]] = set()
        """Unit, flow and side with records of another timestamp type than the topic has now."""

    def land_all(self, scopes: Sequence[UnitScope], folder: str) -> list[UnitScope]:
        """Land *scopes* in *folder*; returns those that could be read.

        If copies have a timestamp of the target, all are read again, without it in fingerprints.
        """
        totals = self.rows, self.offsets, self.bytes_read
        kept = len(self.scopes)
        landed = self.land(scopes, f"{folder}/records")
        stamped = {
            each.index
            for each in landed
            if each.identity.timestamp and (each.index, 0, TARGET) in self._other_times
        }
        if not stamped:
            return landed
        names = ", ".join(each.target_topic for each in landed if each.index in stamped)
        logger.warning(
            "reading again, without comparing timestamps: %s has records with LogAppendTime,"
            " although its message.timestamp.type is CreateTime now",
            names,
        )
        delete_folder(self._spark, folder)
        make_folder(self._spark, folder)
        self.rows, self.offsets, self.bytes_read = totals
        del self.scopes[kept:]
        again = [
            without_timestamps(each, self._scoped.copies[each.index])
            if each.index in stamped
            else each
            for each in landed
        ]
        return self.land(again, f"{folder}/records")

    def with_record_times(self, scope: UnitScope) -> UnitScope:
        """*scope* with the timestamp types of the records that were read."""

        def found(time: TimestampType, flow: int, side: int) -> TimestampType:
            other = (scope.index, flow, side) in self._other_times
            return TimestampType.MIXED if other else time

        flows = tuple(
            replace(each, source_time=found(each.source_time, number, SOURCE))
            for number, each in enumerate(scope.flows)
        )
        return replace(scope, flows=flows, target_time=found(scope.target_time, 0, TARGET))

    def land(self, scopes: Sequence[UnitScope], path: str) -> list[UnitScope]:
        """Append the records of *scopes* to *path*; returns the scopes that could be read."""
        scopes = self._without_unreachable(scopes)
        if not scopes:
            return []
        try:
            landed = self._read(scopes, path)
        except (PySparkException, Py4JJavaError) as error:
            message = str(error)
            if find_spark_problem(message):
                raise
            if self._find_unreachable(scopes):
                return self.land(scopes, path)
            if len(scopes) > 1:
                # One topic may fail the read of all others.
                logger.warning(
                    "retrying %d topics in halves: %s", len(scopes), extract_root_cause(message)
                )
                half = len(scopes) // 2
                return [*self.land(scopes[:half], path), *self.land(scopes[half:], path)]
            (scope,) = scopes
            flows = tuple(each.flow for each in scope.flows)
            reason = explain_read_error(scope.target_topic, message)
            self.failed.append(replace(reason, flows=flows))
            return []
        self.scopes += landed
        return landed

    def _without_unreachable(self, scopes: Sequence[UnitScope]) -> Sequence[UnitScope]:
        """*scopes* that can be reached; the others are added to `failed`."""
        # Halves would not isolate them, and each attempt lasts until Spark's timeout.
        found = self._find_unreachable(scopes)
        for scope in scopes:
            if problem := found.get(scope.index):
                flows = tuple(each.flow for each in scope.flows)
                self.failed.append(not_audited_after(scope.target_topic, problem, flows))
        return [scope for scope in scopes if scope.index not in found]

    def _find_unreachable(self, scopes: Sequence[UnitScope]) -> Mapping[int, KafkaOperationError]:
        """The errors of unreachable clusters and topics by index of the scopes that read them."""
        return {
            scope.index: self._unreachable[place]
            for scope in scopes
            for each in scope.flows
            for alias, topic in (
                (each.flow.source, each.source_topic),
                (each.flow.target, scope.target_topic),
            )
            for place in ((alias, None), (alias, topic))
            if place in self._unreachable
        }

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
                starts = read_log_starts(scopes, clients)
        except KafkaOperationError as problem:
            logger.warning("cannot read log starts: %s", problem)
            if problem.kind in (ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT):
                self._unreachable[problem.cluster, None] = problem
            return None
        # A partition without a leader, or of a topic that was deleted, fails each read of it.
        unread: dict[tuple[str, str | None], KafkaOperationError] = {
            (alias, key.topic): KafkaOperationError(
                kind, cluster=alias, operation="reading records", detail=f"cannot read {key}"
            )
            for alias, reading in starts.items()
            for key, kind in reading.errors.items()
        }
        self._unreachable |= unread
        return None if unread else _apply_read_starts(scopes, self._scoped.copies, starts)

    def _write(self, scopes: Sequence[UnitScope], path: str) -> None:
        planned = tuple(plan_scans(scopes, self._scoped.isolations))
        offsets = sum(each.offsets for each in planned)
        frames = [
            read_records(self._spark, each, self._sample, self._kafka[each.cluster])
            for each in planned
        ]
        records = (
            reduce(DataFrame.unionByName, frames)
            if frames
            else empty_records(self._spark).withColumn("other_time", F.lit(False))
        )
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
            other_time = F.when(F.col("other_time"), F.concat_ws(" ", "topic", "flow", "side"))
            observed = records.coalesce(files).observe(
                counted,
                F.count(F.lit(1)).alias("rows"),
                F.sum("size").alias("bytes"),
                F.concat_ws(",", F.collect_set(other_time)).alias("other_times"),
            )
            masked = any(each.identity.must_change for each in planned)
            write_landed(observed, path, masked=masked)
        rows, size = int(counted.get["rows"]), int(counted.get["bytes"] or 0)
        for place in filter(None, counted.get["other_times"].split(",")):
            topic, flow, side = map(int, place.split())
            self._other_times.add((topic, flow, side))
        self.rows += rows
        self.offsets += offsets
        complete = self._sample.census
        self.bytes_read += size if complete or not rows else round(size / rows * offsets)


_LANDED_SCHEMA: Final = (
    "topic int, packed bigint, offset bigint, ts bigint, fp bigint, kh bigint, size int, "
    "masked array<bigint>"
)
_PARTITIONS: Final = (1 << 24) - 1
_BITS: Final = {"in_records": 24, "in_keys": 25, "tombstone": 26, "side": 27, "flow": 28}
"""In `packed`, after the partition; `flow` has all that follow."""


def write_landed(records: DataFrame, path: str, *, masked: bool) -> None:
    """Append *records*, with the columns of `RECORD_SCHEMA`, to the Parquet files at *path*.

    Parquet costs by column, and thirteen took more CPU time than reading and hashing: the smallest
    ones share one, and `masked` is written only if the records have parts that must change.
    """
    packed = F.col("partition").cast("bigint")
    for name, place in _BITS.items():
        packed = packed.bitwiseOR(F.shiftleft(F.col(name).cast("bigint"), place))
    columns = ("offset", "ts", "fp", "kh", "size", *(("masked",) if masked else ()))
    # Hashes and offsets do not repeat: a dictionary of them is built only to be dropped.
    options = {"compression": "zstd", "parquet.enable.dictionary": "false"}
    landed = records.select("topic", packed.alias("packed"), *columns)
    landed.write.mode("append").options(**options).parquet(path)


def read_landed(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """The records at *paths*, with the columns of `RECORD_SCHEMA`; no `masked` is null."""

    def bit(name: str) -> Column:
        return F.shiftright("packed", _BITS[name]).bitwiseAND(F.lit(1))

    return (
        spark.read.schema(_LANDED_SCHEMA)
        .parquet(*paths)
        .select(
            "topic",
            F.shiftright("packed", _BITS["flow"]).cast("int").alias("flow"),
            bit("side").cast("tinyint").alias("side"),
            F.col("packed").bitwiseAND(F.lit(_PARTITIONS)).cast("int").alias("partition"),
            *("offset", "ts", "fp", "kh", "size"),
            *((bit(name) == 1).alias(name) for name in ("in_records", "in_keys", "tombstone")),
            "masked",
        )
    )


def empty_records(spark: SparkSession) -> DataFrame:
    """An empty frame with the columns of `RECORD_SCHEMA`."""
    nothing = F.from_json(F.lit(None), RECORD_SCHEMA).alias("record")
    return spark.range(0).select(nothing).select("record.*")


def read_log_starts(
    scopes: Sequence[UnitScope], clients: Mapping[str, ClusterClient]
) -> Mapping[str, OffsetReading]:
    """The current log starts of both sides by cluster. Raises KafkaOperationError."""
    wanted: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for scope in scopes:
        for flow in scope.flows:
            counts = {flow.source_topic: len(flow.partitions)}
            wanted[flow.flow.source] += partitions_of([flow.source_topic], counts)
        counts = {scope.target_topic: len(scope.partitions)}
        wanted[scope.flows[0].flow.target] += partitions_of([scope.target_topic], counts)
    return {
        alias: clients[alias].start_offsets(list(dict.fromkeys(keys)))
        for alias, keys in wanted.items()
    }


def _apply_read_starts(
    scopes: Sequence[UnitScope],
    copies: Sequence[Mapping[CopyKey, CopyMap]],
    starts: Mapping[str, OffsetReading],
) -> list[UnitScope] | None:
    """The scopes with these log starts; None if nothing they read was deleted.

    *copies* by index of the scope, *starts* by cluster.
    """
    found = [
        apply_log_starts(
            scope,
            copies[scope.index],
            {
                index: _topic_starts(starts[flow.flow.source].offsets, flow.source_topic)
                for index, flow in enumerate(scope.flows)
            },
            _topic_starts(starts[scope.flows[0].flow.target].offsets, scope.target_topic),
        )
        for scope in scopes
    ]
    moved = any(
        _read_starts(new) != _read_starts(old) for new, old in zip(found, scopes, strict=True)
    )
    return found if moved else None


def _topic_starts(starts: Mapping[TopicPartition, int], topic: str) -> Starts:
    return {key.partition: start for key, start in starts.items() if key.topic == topic}


def _read_starts(scope: UnitScope) -> list[int]:
    sources = [each.read_from for flow in scope.flows for each in flow.partitions]
    return [*sources, *(each.read_from for each in scope.partitions)]


_PACKED = (
    "topic int, flow int, side tinyint, partition int, "
    "end array<bigint>, earliest array<bigint>, latest array<bigint>"
)
_POLLS_PER_LINE = 10_000


def poll_frame(spark: SparkSession, polls: Sequence[ArrivalPoll]) -> DataFrame:
    """*polls*, grouped by partition, with the columns of `ArrivalPoll`.

    `SparkSession.createDataFrame` would need a Python worker on the executors.
    """
    parsed = F.from_json("value", _PACKED).alias("packed")
    zipped = F.explode(F.arrays_zip("packed.end", "packed.earliest", "packed.latest"))
    names = ("topic", "flow", "side", "partition")
    rows = _text_frame(spark, _packed_lines(polls)).select(parsed)
    return rows.select(*(f"packed.{name}" for name in names), zipped.alias("poll")).select(
        *names, "poll.end", "poll.earliest", "poll.latest"
    )


def _packed_lines(polls: Sequence[ArrivalPoll]) -> Iterator[str]:
    """JSON of the columns `_PACKED`: fewer rows to pass to the JVM."""
    for (topic, flow, side, partition), each in groupby(polls, _poll_partition):
        held = list(each)
        for first in range(0, len(held), _POLLS_PER_LINE):
            part = held[first : first + _POLLS_PER_LINE]
            yield json.dumps(
                {
                    "topic": topic,
                    "flow": flow,
                    "side": side_code(side),
                    "partition": partition,
                    "end": [poll.end for poll in part],
                    "earliest": [poll.earliest for poll in part],
                    "latest": [poll.latest for poll in part],
                }
            )


def _poll_partition(poll: ArrivalPoll) -> tuple[int, int, Side, int]:
    return poll.topic, poll.flow, poll.side, poll.partition


def _text_frame(spark: SparkSession, lines: Iterable[str]) -> DataFrame:
    """One column, `value`. PySpark has no public API for a local table of the JVM."""
    jvm = spark.sparkContext._jvm
    if jvm is None:
        raise RuntimeError("the Spark session has no JVM: Spark Connect is not supported")
    held = jvm.java.util.ArrayList()
    for line in lines:
        held.add(line)
    strings = jvm.org.apache.spark.sql.Encoders.STRING()
    return DataFrame(spark._jsparkSession.createDataset(held, strings).toDF(), spark)


_EVERY_SECONDS: Final = 0.5


class ScanProgress:
    """Reports the offsets read by successive jobs."""

    def __init__(self, on_read: Callable[[int], None]) -> None:
        self._on_read = on_read
        self._done = 0

    @contextmanager
    def track_job(
        self, context: SparkContext, group: str, offsets: int, *, tasks: int
    ) -> Iterator[None]:
        """Report progress of the job in the context: *offsets* read in at least *tasks* tasks."""
        context.setJobGroup(group, "mm2slo audit: reading")
        ended = threading.Event()
        tracker = context.statusTracker()
        watcher = threading.Thread(
            target=self._watch,
            args=(partial(_finished_share, tracker, group, tasks), offsets, ended),
            name=group,
            daemon=True,
        )
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()
        self._done += offsets
        self._report(0)

    def _watch(self, share: Callable[[], float], offsets: int, ended: threading.Event) -> None:
        while not ended.wait(_EVERY_SECONDS):
            # The JVM may be shutting down; progress must not fail the run.
            with suppress(Exception):
                self._report(round(offsets * share()))

    def _report(self, current: int) -> None:
        self._on_read(self._done + current)


def _finished_share(tracker: StatusTracker, group: str, min_tasks: int) -> float:
    """Finished share of the read stage's tasks; other stages have fewer tasks than *min_tasks*."""
    done = tasks = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            found = tracker.getStageInfo(stage)
            if found is not None and found.numTasks >= min_tasks:
                done += found.numCompletedTasks
                tasks += found.numTasks
    return done / tasks if tasks else 0.0
