"""Matching, order and brackets of arrival in one exchange of the records.

    records + polls ── exchange by (topic, partition) ──> groups of equal identity: copies of each
       side, first offsets ──> sorted by source offset: bracket on the source, overtaken copies
       ──> sorted by target offset: bracket on the target ──> tally by partition and cell

All grouping and sorting happens within (topic, partition), so Spark adds no further exchange. Polls
are rows among the records: sorted by offset descending, the last poll seen is the first that was
beyond a record. For units of which `matchable` is true; pairs that a group of counts does not tell
apart (`repeated`) are left to `pairing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.cells import SUMS, latency_columns, packed
from mm2slo_audit.engine.schema import SOURCE, TARGET
from mm2slo_audit.engine.units import compares_records
from mm2slo_core.audit.scope import TimestampType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

    from mm2slo_audit.engine.units import Units
    from mm2slo_core.audit.scope import UnitScope

_POLL: Final = -(1 << 63)
"""Added to the time of a poll, so that it is told from the timestamp of a record."""
_UNKNOWN: Final = -(1 << 62)
"""In place of null, which `last` would pass over."""


def matchable(scope: UnitScope) -> bool:
    """Whether counts of copies tell all: own partition, own timestamp."""
    return (
        compares_records(scope)
        and scope.identity.timestamp
        and scope.target_time is TimestampType.CREATE
    )


def tally(records: DataFrame, polls: DataFrame, units: Units, partitions: int) -> DataFrame:
    """One row per (topic, flow, partition), flow null for what the target alone has.

    Columns: `matched` and `source_bytes` of judged records; numbers of groups that are `missing`
    records or `unexplained` (judged), `duplicated` (judged or not, for what is not decides on
    replays), `repeated` (of several source records, whose order or flow counts do not tell);
    `descents` (judged or not); `e_cells`, `x_cells` (arrays of `packed`) and the sums of bounds.
    *partitions*: how many the exchange makes.
    """
    several_flows = any(len(each.flows) > 1 for each in units.scopes)
    rows = _records(units.of(records)).unionByName(_polls(units.of(polls)))
    exchanged = rows.repartition(partitions, "topic", "partition")
    groups = exchanged.groupBy("topic", "partition", "ts", "fp").agg(
        F.count("s").alias("ns"),
        F.count("t").alias("nd"),
        F.min("s").alias("s"),
        F.min("t").alias("t"),
        F.sum("bytes").alias("bytes"),
        (F.max("flow") if several_flows else F.lit(0)).alias("flow"),
    )
    rows = _bracketed(groups, several_flows=several_flows)
    return _tallied(rows, units, several_flows=several_flows)


def _records(records: DataFrame) -> DataFrame:
    source = F.col("side") == SOURCE
    return records.where("in_records").select(
        "topic",
        "partition",
        "ts",
        "fp",
        F.when(source, F.col("offset")).alias("s"),
        F.when(~source, F.col("offset")).alias("t"),
        F.when(source, F.col("size")).cast("bigint").alias("bytes"),
        F.when(source, F.col("flow")).alias("flow"),
    )


def _polls(polls: DataFrame) -> DataFrame:
    """Polls in the columns of records: the time of the answer in `ts`, the start in `bytes`."""
    source = F.col("side") == SOURCE
    return polls.select(
        "topic",
        "partition",
        (F.col("latest") + _POLL).alias("ts"),
        F.xxhash64("side", "flow", "end").alias("fp"),
        F.when(source, F.col("end")).alias("s"),
        F.when(F.col("side") == TARGET, F.col("end")).alias("t"),
        F.col("earliest").alias("bytes"),
        F.when(source, F.col("flow")).alias("flow"),
    )


def _bracketed(groups: DataFrame, *, several_flows: bool) -> DataFrame:
    lane = ["topic", "partition", *(["flow"] if several_flows else [])]
    poll = F.col("ts") < _UNKNOWN
    by_source = Window.partitionBy(*lane).orderBy(F.desc(_order("s", poll)), F.desc("ts"))
    by_target = Window.partitionBy("topic", "partition").orderBy(
        F.desc(_order("t", poll)), F.desc("ts")
    )
    # Descending, so the one before comes after. The functions of pyspark pass over no nulls here.
    sorted_by_source = groups.select(
        "*",
        *_last_poll("s", poll, by_source),
        F.expr(
            f"lead(if(ts >= {_UNKNOWN} and ns > 0 and nd > 0, t, null), 1) ignore nulls over "
            f"(partition by {', '.join(lane)} order by "
            f"if(ts < {_UNKNOWN}, 2 * s, 2 * s + 1) desc, ts desc)"
        ).alias("t_before"),
    )
    sorted_by_target = sorted_by_source.select("*", *_last_poll("t", poll, by_target))
    return sorted_by_target.where(~poll)


def _order(side: str, poll: Column) -> Column:
    """Offsets, a poll after the record at its end: that one it does not cover."""
    return F.when(poll, F.col(side) * 2).otherwise(F.col(side) * 2 + 1)


def _last_poll(side: str, poll: Column, window: WindowSpec) -> list[Column]:
    here = poll & F.col(side).isNotNull()
    seen = window.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    time = F.col("ts") - _POLL
    start = F.coalesce(F.expr("bytes div (ns + nd)"), F.lit(_UNKNOWN))
    return [
        F.last(F.when(here, time), ignorenulls=True).over(seen).alias(f"{side}_latest"),
        F.last(F.when(here, start), ignorenulls=True).over(seen).alias(f"{side}_start"),
    ]


def _tallied(rows: DataFrame, units: Units, *, several_flows: bool) -> DataFrame:
    judged = units.judged
    ns, nd = F.col("ns"), F.col("nd")
    matched = judged & (ns > 0) & (nd > 0)
    # Whose they are is not told either where flows meet.
    repeated = (ns > 1) if several_flows else (ns > 1) & (nd > 0)
    stamped = units.stamped_source
    bounded = rows.select(
        "topic",
        "partition",
        F.when(ns > 0, F.col("flow")).alias("flow"),
        "ts",
        F.when(stamped, F.col("ts")).otherwise(_known("s_start")).alias("s_earliest"),
        F.when(stamped, F.col("ts")).otherwise(F.col("s_latest")).alias("s_latest"),
        _known("t_start").alias("t_earliest"),
        "t_latest",
        matched.alias("matched"),
        F.when(judged & (ns > 0), F.col("bytes")).otherwise(0).alias("source_bytes"),
        (judged & (ns > nd)).cast("int").alias("missing"),
        ((nd > ns) & (ns > 0)).cast("int").alias("duplicated"),
        (judged & (ns == 0)).cast("int").alias("unexplained"),
        repeated.cast("int").alias("repeated"),
        ((ns > 0) & (nd > 0) & (F.col("t_before") > F.col("t"))).cast("int").alias("descents"),
    )
    counts = ("source_bytes", "missing", "duplicated", "unexplained", "repeated", "descents")
    return partition_tally(
        bounded.select(
            "topic",
            "flow",
            "partition",
            F.col("matched").cast("int").alias("matched"),
            *counts,
            *(each.alias(name) for name, each in latency_columns(units, F.col("matched")).items()),
        ),
        ("matched", *counts),
    )


def partition_tally(rows: DataFrame, counts: tuple[str, ...]) -> DataFrame:
    """Rows with cells added up, in two steps so that the second sees few."""
    by_cell = rows.groupBy("topic", "flow", "partition", "e_cell", "x_cell").agg(
        F.sum("matched").alias("n"), *(F.sum(each).alias(each) for each in (*counts, *SUMS))
    )
    return by_cell.groupBy("topic", "flow", "partition").agg(
        *(F.sum(each).alias(each) for each in (*counts, *SUMS)),
        *(
            F.collect_list(F.when(F.col("n") > 0, packed(kind))).alias(f"{kind}_cells")
            for kind in ("e", "x")
        ),
    )


def _known(name: str) -> Column:
    return F.when(F.col(name) != _UNKNOWN, F.col(name))
