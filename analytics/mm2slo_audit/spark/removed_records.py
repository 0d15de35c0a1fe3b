"""Gaps in the target's offsets, which excuse records without a copy.

A topic that was compacted earlier has cleanup.policy=delete now, but not the copies that compaction
removed. MirrorMaker 2 without transactions uses each offset for one record, so compaction leaves a
gap for each copy that it removes, and above the last gap a record without a copy is lost. With
transactions each of their markers is a gap as well: gaps then show nothing.

Only partitions with lost records are read, a second time.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from mm2slo_audit.scope.scope_assembly import (
    UNCOMMITTED,
    RunScope,
    Starts,
    apply_bounds,
    first_copy_offset,
)
from mm2slo_audit.spark.connector_rows import read_rows
from mm2slo_audit.spark.scan_plan import Scan, ScanRange
from mm2slo_core.audit.audit_scope import Comparison, TimestampType, UnitScope
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.unit_outcome import UnitOutcome, Verdict
from mm2slo_core.records.timeline_record import Side


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
