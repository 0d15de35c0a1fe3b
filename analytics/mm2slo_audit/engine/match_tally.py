"""Matches, order and arrival brackets of plain units in one exchange of the records.

records + polls ── exchange by (topic, partition) ──> groups of equal identity: copies of each
   side, first offsets ──> sorted by source offset: bracket on the source, overtaken copies
   ──> sorted by target offset: bracket on the target ──> tally by partition and cell

Grouping and sorting stay within (topic, partition), or a part of it, so Spark adds no further
exchange. Polls are rows among the records: sorted by offset descending, the last poll seen is the
first that was beyond a record. Groups that counts do not decide are marked (`group_marks`) for
`second_pass`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.group_marks import (
    aggregate_lanes,
    aggregate_marks,
    flag_groups,
    mark_columns,
)
from mm2slo_audit.engine.late_copies import is_late
from mm2slo_audit.engine.latency_cells import SUMS, latency_columns, pack_cells
from mm2slo_audit.engine.partition_parts import Parts, all_parts, part_column
from mm2slo_audit.engine.record_schema import SOURCE
from mm2slo_audit.engine.time_slices import TimeSlices
from mm2slo_audit.engine.unit_columns import compares_records
from mm2slo_core.audit.audit_scope import TimestampType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, WindowSpec

    from mm2slo_audit.engine.unit_columns import Units
    from mm2slo_core.audit.audit_scope import UnitScope

_POLL: Final = -(1 << 63)
"""Added to the time of a poll to distinguish it from the timestamp of a record."""
_RECORD: Final = -(1 << 62)
"""Lower bound of record timestamps."""
_UNKNOWN: Final = -1
"""Start of a poll without a predecessor; no poll is from 1969."""
_HALF: Final = 32
"""Bits of the lower of two packed numbers: fewer columns to exchange and compare."""
_LOWER: Final = (1 << _HALF) - 1
_PART_AT: Final = 24
"""In a place: the partition's bits, with the part above them."""
_TOPIC_AT: Final = 40
_ENDS: Final = ("s_low", "s_high", "t_low", "t_high")


def is_plain_unit(scope: UnitScope) -> bool:
    """Whether counts of copies decide: copies keep partition and timestamp."""
    return (
        compares_records(scope)
        and scope.identity.timestamp
        and scope.target_time is TimestampType.CREATE
    )


def tally_matches(
    records: DataFrame,
    polls: DataFrame,
    units: Units,
    partitions: int,
    split: Parts | None = None,
) -> DataFrame:
    """One row per (topic, flow, partition, part); flow is null for records only on the target.

    `matched`, `late` of them, and `source_bytes` of records in the window, without repeated ones;
    `marks`; groups by flag: `missing` and `unexplained` (in the window), `duplicated`, `repeated`
    (several source records: counts do not say their order or flow), `overtaken` (a later record
    precedes it on the target); `e_cells`, `x_cells` (arrays of `pack_cells`) and the sums of
    bounds. With *split* also first and last offsets of matched records: `s_low`, `s_high`, `t_low`,
    `t_high`. *partitions*: of the exchange.
    """
    split = split or {}
    several_flows = any(len(each.flows) > 1 for each in units.scopes)
    rows = _records(units, records, split).unionByName(_polls(units.of(polls), split))
    if not several_flows:
        rows = rows.drop("flow")
    flow = F.max("flow") if several_flows else F.lit(0)
    groups = (
        rows.repartition(partitions, "place")
        .groupBy("place", "ts", "fp")
        .agg(
            F.sum(F.when(_on_source(), 1).otherwise(F.lit(1 << _HALF))).alias("n"),
            F.min(F.when(_on_source(), F.col("at"))).alias("s"),
            F.max(F.when(~_on_source(), F.col("at"))).alias("t"),
            F.sum("bytes").alias("bytes"),
            flow.alias("flow"),
        )
        .select(
            "place",
            "ts",
            "flow",
            "bytes",
            "s",
            F.bitwise_not("t").alias("t"),
            F.col("n").bitwiseAND(F.lit(_LOWER)).alias("ns"),
            F.shiftright("n", _HALF).alias("nd"),
        )
    )
    rows = _add_brackets(groups, several_flows=several_flows)
    return _tallied(rows, units, several_flows=several_flows, spans=bool(split))


def _records(units: Units, records: DataFrame, split: Parts) -> DataFrame:
    """`place` packs topic and partition; `at`: the offset, on the target its complement (< 0)."""
    source = F.col("side") == SOURCE
    return (
        units.of(records)
        .where("in_records")
        .select(
            _place(part_column(units, split)),
            "ts",
            "fp",
            F.when(source, F.col("offset")).otherwise(F.bitwise_not("offset")).alias("at"),
            F.when(source, F.col("size")).otherwise(0).cast("bigint").alias("bytes"),
            F.when(source, F.col("flow")).alias("flow"),
        )
    )


def _polls(polls: DataFrame, split: Parts) -> DataFrame:
    """Polls in the columns of records: time of the answer in `ts`, start in `bytes`."""
    source = F.col("side") == SOURCE
    if split:
        polls = polls.withColumn("part", F.explode(all_parts(split)))
    return polls.select(
        _place(F.col("part") if split else F.lit(0).cast("bigint")),
        (F.col("latest") + _POLL).alias("ts"),
        F.xxhash64("side", "flow", "end").alias("fp"),
        F.when(source, F.col("end")).otherwise(F.bitwise_not("end")).alias("at"),
        F.coalesce("earliest", F.lit(_UNKNOWN)).alias("bytes"),
        F.when(source, F.col("flow")).alias("flow"),
    )


def _place(part: Column) -> Column:
    topic = F.shiftleft(F.col("topic").cast("bigint"), _TOPIC_AT)
    partition = F.col("partition").cast("bigint")
    return topic.bitwiseOR(F.shiftleft(part, _PART_AT)).bitwiseOR(partition).alias("place")


def _on_source() -> Column:
    return F.col("at") >= 0


def _add_brackets(groups: DataFrame, *, several_flows: bool) -> DataFrame:
    poll = F.col("ts") < _RECORD
    both = ~poll & (F.col("ns") > 0) & (F.col("nd") > 0)
    sorted_by_source = groups.select(
        "*",
        *_last_poll("s", poll, ["place", *(["flow"] if several_flows else [])]),
        # Descending, so these are the copies of this record and all later ones.
        F.min(F.when(both, F.col("t")))
        .over(_from_last("s", poll, ["place", *(["flow"] if several_flows else [])]))
        .alias("t_first"),
    )
    sorted_by_target = sorted_by_source.select("*", *_last_poll("t", poll, ["place"]))
    return sorted_by_target.where(~poll)


def _from_last(side: str, poll: Column, lane: list[str]) -> WindowSpec:
    """From the last offset down; a poll follows the record at its end, which it does not cover."""
    order = F.when(poll, F.col(side) * 2).otherwise(F.col(side) * 2 + 1)
    return (
        Window.partitionBy(*lane)
        .orderBy(F.desc(order), F.desc("ts"))
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )


def _last_poll(side: str, poll: Column, lane: list[str]) -> list[Column]:
    here = poll & F.col(side).isNotNull()
    seen = _from_last(side, poll, lane)
    # A poll that was landed twice is one group whose starts were summed.
    start = F.expr("bytes div (ns + nd)")
    return [
        F.last(F.when(here, F.col("ts") - _POLL), ignorenulls=True)
        .over(seen)
        .alias(f"{side}_latest"),
        F.last(F.when(here, start), ignorenulls=True).over(seen).alias(f"{side}_start"),
    ]


def _tallied(rows: DataFrame, units: Units, *, several_flows: bool, spans: bool) -> DataFrame:
    ns, nd = F.col("ns"), F.col("nd")
    judged, stamped = units.judged, units.stamped_source
    # Where several flows meet, counts do not say whose the copies are.
    repeated = (ns > 1) if several_flows else (ns > 1) & (nd > 0)
    overtaken = F.coalesce((ns > 0) & (F.col("t_first") < F.col("t")), F.lit(False))
    attributed = (ns == 1) if several_flows else (ns > 0)
    topic = F.shiftright("place", _TOPIC_AT).cast("int").alias("topic")
    partition = F.col("place").bitwiseAND(F.lit((1 << _PART_AT) - 1)).cast("int").alias("partition")
    placed = rows.select(
        "*",
        topic,
        partition,
    ).withColumn("flow", F.when(ns > 0, F.col("flow")))
    matched = judged & (ns > 0) & (nd > 0) & ~repeated
    late = matched & is_late(units, "s", "t", "partition")
    bounded = placed.select(
        "place",
        "topic",
        "flow",
        "ts",
        F.when(stamped, F.col("ts")).otherwise(_known("s_start")).alias("s_earliest"),
        F.when(stamped, F.col("ts")).otherwise(F.col("s_latest")).alias("s_latest"),
        _known("t_start").alias("t_earliest"),
        "t_latest",
        "s",
        "t",
        "t_first",
        matched.alias("matched"),
        late.alias("late"),
        F.when(judged & attributed, F.col("bytes")).otherwise(0).alias("source_bytes"),
        ((ns > 0) & (nd > 0)).alias("copied"),
        flag_groups(units, repeated, overtaken, late).alias("flags"),
    )
    ends = [
        F.when(F.col("copied"), F.col(name[0])).alias(name) for name in (_ENDS if spans else ())
    ]
    found = tally_partitions(
        bounded.select(
            "place",
            "flow",
            F.col("matched").cast("int").alias("matched"),
            F.col("late").cast("int").alias("late"),
            "source_bytes",
            *(each.alias(name) for name, each in latency_columns(units, F.col("matched")).items()),
            *(each.alias(name) for name, each in mark_columns(TimeSlices(units)).items()),
            *ends,
        ),
        ("place", "flow"),
        ("matched", "late", "source_bytes"),
        marked=True,
        ends=_ENDS if spans else (),
    )
    # Computed only now: grouping by a computed column would add an exchange.
    number = F.shiftright("place", _PART_AT).bitwiseAND(F.lit((1 << (_TOPIC_AT - _PART_AT)) - 1))
    return found.select(topic, partition, number.cast("int").alias("part"), "*").drop("place")


def tally_partitions(
    rows: DataFrame,
    lane: tuple[str, ...],
    counts: tuple[str, ...],
    *,
    marked: bool = False,
    ends: Sequence[str] = (),
) -> DataFrame:
    """Sum rows and their cells by *lane*, in two steps so that the second has few rows.

    *marked*: the rows have `mark_columns`; *ends*: columns whose lowest (`_low`) or highest value
    is kept.
    """
    extremes = [(F.min if name.endswith("_low") else F.max)(name).alias(name) for name in ends]
    by_cell = rows.groupBy(*lane, "e_cell", "x_cell", *(("mark",) if marked else ())).agg(
        F.sum("matched").alias("n"),
        *(F.sum(each).alias(each) for each in (*counts, *SUMS)),
        *(aggregate_marks() if marked else ()),
        *extremes,
    )
    return by_cell.groupBy(*lane).agg(
        *(F.sum(each).alias(each) for each in (*counts, *SUMS)),
        *(
            F.collect_list(F.when(F.col("n") > 0, pack_cells(kind))).alias(f"{kind}_cells")
            for kind in ("e", "x")
        ),
        *(aggregate_lanes() if marked else ()),
        *extremes,
    )


def _known(name: str) -> Column:
    return F.when(F.col(name) != _UNKNOWN, F.col(name))
