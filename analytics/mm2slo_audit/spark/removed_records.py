"""Records that were removed before they were read: by retention, or by former compaction.

During the read, log starts show what retention removed. A topic that was compacted earlier has
cleanup.policy=delete now, but not the copies that compaction removed. MirrorMaker 2 without
transactions uses each offset for one record, so compaction leaves a gap for each copy that it
removes, and above the last gap a record without a copy is lost. With transactions each of their
markers is a gap as well, so gaps do not show compaction. Offsets are read, a second time, only of
partitions with lost records.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from mm2slo_audit.scope.scope_assembly import (
    UNCOMMITTED,
    CopyKey,
    CopyMap,
    RunScope,
    Starts,
    apply_bounds,
    apply_log_starts,
    first_copy_offset,
    partitions_of,
)
from mm2slo_audit.spark.connector_rows import read_rows
from mm2slo_audit.spark.scan_plan import Scan, ScanRange
from mm2slo_core.audit.audit_scope import Comparison, TimestampType, UnitScope
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.partition_offsets import OffsetReading


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


def apply_read_starts(
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


def excuse_removed_copies(
    spark: SparkSession,
    scoped: RunScope,
    outcomes: Sequence[UnitOutcome],
    kafka: Mapping[str, Mapping[str, str]],
) -> list[UnitScope]:
    """The scopes with lost records whose copies may have been removed, and do not count as lost.

    *kafka*: settings of Java's consumer by cluster.
    """
    doubted = [each for each in outcomes if _gaps_show_compaction(each.scope, scoped)]
    wanted: defaultdict[str, list[ScanRange]] = defaultdict(list)
    for each in doubted:
        wanted[each.scope.flows[0].flow.target] += _ranges(each, scoped)
    kept_from = {
        (cluster, topic): gaps
        for cluster, ranges in wanted.items()
        if ranges
        for topic, gaps in find_last_gaps(spark, cluster, ranges, kafka[cluster]).items()
    }
    return [
        apply_bounds(each.scope, scoped.copies[each.scope.index], gaps)
        for each in doubted
        if (gaps := kept_from.get((each.scope.flows[0].flow.target, each.scope.target_topic)))
    ]


def _gaps_show_compaction(scope: UnitScope, scoped: RunScope) -> bool:
    return (
        scope.comparison is not Comparison.LATEST
        and scoped.isolations[scope.index].target == UNCOMMITTED
        and all(flow.has_positions for flow in scope.flows)
    )


def _ranges(outcome: UnitOutcome, scoped: RunScope) -> Iterator[ScanRange]:
    """Where the copies of lost records may have been."""
    scope = outcome.scope
    lost = {each.partition for each in outcome.partitions if each.counts.get(Verdict.LOST)}
    for each in scope.partitions:
        # By offset: of the window's copies, compaction may have removed the first.
        start = first_copy_offset(each, scope, scoped.copies[scope.index])
        if each.partition in lost and start < each.end:
            yield ScanRange(scope.target_topic, each.partition, start, each.end)


def find_last_gaps(
    spark: SparkSession, cluster: str, ranges: Collection[ScanRange], kafka: Mapping[str, str]
) -> Mapping[str, Starts]:
    """Where the last gap in each of *ranges* ends, by topic and partition."""
    # Identity and timestamps are not read.
    scan = Scan(
        cluster, Side.TARGET, UNCOMMITTED, Identity(), TimestampType.CREATE, {}, tuple(ranges)
    )
    place = ("topic", "partition")
    in_order = Window.partitionBy(*place).orderBy("offset")
    rows = read_rows(spark, scan, kafka, headers=False).select(*place, "offset")
    after = rows.withColumn("expected", F.lag("offset").over(in_order) + 1)
    found = after.groupBy(*place).agg(
        F.max(F.when(F.col("offset") > F.col("expected"), F.col("offset"))).alias("resumed"),
        F.min("offset").alias("first"),
        (F.max("offset") + 1).alias("end"),
    )
    by_place = {(row.topic, row.partition): row for row in found.collect()}
    gaps: defaultdict[str, Starts] = defaultdict(dict)
    for each in ranges:
        row = by_place.get((each.topic, each.partition))
        if row is None or row.end < each.end:
            gaps[each.topic][each.partition] = each.end
        elif row.resumed is not None or row.first > each.start:
            gaps[each.topic][each.partition] = row.resumed or row.first
    return gaps
