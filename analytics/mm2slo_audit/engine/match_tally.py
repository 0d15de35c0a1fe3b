"""Matches, order and arrival brackets of plain units in one exchange of the records.

records + polls ── exchange by (topic, partition) ──> groups of equal identity: copies of each
   side, first offsets ──> sorted by source offset: bracket on the source, overtaken copies
   ──> sorted by target offset: bracket on the target ──> tally by partition and cell

Grouping and sorting stay within (topic, partition), or a part of it, so Spark adds no further
exchange. Polls are rows among the records: sorted by offset descending, the last poll seen is the
first that was beyond a record. Groups that counts do not decide are marked (`group_marks`) for
`second_pass`. Latencies are brackets as packed bucket numbers.

A very large partition has parts, so that no single task has to process all of it. Parts cover equal
times, not equal offsets: equal records have equal timestamps, so a part has its records of both
sides. Records can overtake each other across parts only where the offsets of the parts overlap; see
`find_overlaps`.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Row, Window, WindowSpec
from pyspark.sql import functions as F

from mm2slo_audit.engine.group_marks import (
    TimeSlices,
    aggregate_lanes,
    aggregate_marks,
    flag_groups,
    mark_columns,
)
from mm2slo_audit.engine.record_verdicts import is_late
from mm2slo_audit.engine.unit_columns import SOURCE, Units, compares_records, judges_order
from mm2slo_core.audit.audit_scope import TimestampType, UnitScope
from mm2slo_core.audit.unit_outcome import PER_DOUBLING, LatencyCells

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
    polls: DataFrame | None,
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
    `t_high`. *polls* None: no polls. *partitions*: of the exchange.
    """
    split = split or {}
    several_flows = any(len(each.flows) > 1 for each in units.scopes)
    rows = _records(units, records, split)
    if polls is not None:
        rows = rows.unionByName(_polls(units.of(polls), split))
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
    rows = _add_brackets(
        groups,
        several_flows=several_flows,
        polled=polls is not None,
        ordered=bool(units.where(judges_order)),
    )
    return _add_tally_columns(rows, units, several_flows=several_flows, spans=bool(split))


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


def _add_brackets(
    groups: DataFrame, *, several_flows: bool, polled: bool, ordered: bool
) -> DataFrame:
    """Each window sorts all groups, so only those that polls or order need are computed."""
    poll = F.col("ts") < _RECORD
    both = ~poll & (F.col("ns") > 0) & (F.col("nd") > 0)
    lane = ["place", *(["flow"] if several_flows else [])]
    # Descending, so these are the copies of this record and all later ones.
    first = F.min(F.when(both, F.col("t"))).over(_from_last("s", poll, lane))
    t_first = (first if ordered else F.lit(None).cast("bigint")).alias("t_first")
    if not polled:
        unknown = ("s_latest", "s_start", "t_latest", "t_start")
        none = F.lit(None).cast("bigint")
        return groups.select("*", t_first, *(none.alias(name) for name in unknown))
    sorted_by_source = groups.select("*", *_last_poll("s", poll, lane), t_first)
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


def _add_tally_columns(
    rows: DataFrame, units: Units, *, several_flows: bool, spans: bool
) -> DataFrame:
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
        F.when(stamped, F.col("ts")).otherwise(_null_if_unknown("s_start")).alias("s_earliest"),
        F.when(stamped, F.col("ts")).otherwise(F.col("s_latest")).alias("s_latest"),
        _null_if_unknown("t_start").alias("t_earliest"),
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
        *(F.sum(each).alias(each) for each in (*counts, *LATENCY_SUMS)),
        *(aggregate_marks() if marked else ()),
        *extremes,
    )
    return by_cell.groupBy(*lane).agg(
        *(F.sum(each).alias(each) for each in (*counts, *LATENCY_SUMS)),
        *(
            F.collect_list(F.when(F.col("n") > 0, pack_cells(kind))).alias(f"{kind}_cells")
            for kind in ("e", "x")
        ),
        *(aggregate_lanes() if marked else ()),
        *extremes,
    )


def _null_if_unknown(name: str) -> Column:
    return F.when(F.col(name) != _UNKNOWN, F.col(name))


NO_BUCKET: Final = -1
"""The record is not matched, or its bracket is unknown."""
NEGATIVE_BUCKET: Final = -2

UNBRACKETED_BUCKET: Final = -3
"""The timeline has no bracket for the copy."""

_UPPERS: Final = 1024
"""Greater than any bucket number: 2^63 ms is in bucket 1008."""
_COUNT_BITS: Final = 40

_LOG2_ERROR: Final = 2e-13
"""Spark's log2 is one bit too high at some powers of two."""


def latency_bucket(ms: Column) -> Column:
    """`latency_histogram.bucket` of a non-negative latency."""
    log = F.log2(F.greatest(ms, F.lit(1)).cast("double"))
    return F.ceil(log * PER_DOUBLING - _LOG2_ERROR).cast("int")


def latency_columns(units: Units, counted: Column) -> dict[str, Column]:
    """Cells and bounds of pairs, for rows where *counted*.

    Reads ts, s_earliest, s_latest, t_earliest, t_latest (null: unknown). Gives `e_cell` (end to
    end) and `x_cell` (transfer), and the bounds `e_upper`, `e_lower`, ... in ms.
    """
    ts = F.col("ts")
    arrived, started = F.col("t_latest"), F.col("s_earliest")
    known = counted & arrived.isNotNull()
    lower = F.col("t_earliest")
    created = known & units.created_source
    sent = known & started.isNotNull()
    return {
        "e_cell": F.when(counted & arrived.isNull(), UNBRACKETED_BUCKET)
        .when(created, _cell(lower - ts, arrived - ts))
        .otherwise(NO_BUCKET),
        "e_upper": F.when(created & (arrived >= ts), arrived - ts),
        "e_lower": F.when(created & (arrived >= ts), F.greatest(lower - ts, F.lit(0))),
        "x_cell": F.when(sent, _cell(lower - F.col("s_latest"), arrived - started)).otherwise(
            NO_BUCKET
        ),
        "x_upper": F.when(sent & (arrived >= started), arrived - started),
        "x_lower": F.when(
            sent & (arrived >= started), F.greatest(lower - F.col("s_latest"), F.lit(0))
        ),
    }


LATENCY_SUMS: Final = ("e_upper", "e_lower", "x_upper", "x_lower")


def pack_cells(kind: str) -> Column:
    """A cell and its count `n` in one number, for `unpack_cells`."""
    return F.shiftleft(F.col(f"{kind}_cell").cast("bigint") + 4, _COUNT_BITS) + F.col("n")


def unpack_cells(numbers: Iterable[int], upper: int | None, lower: int | None) -> LatencyCells:
    """The histogram of packed cells; counts of equal cells add up."""
    cells: dict[tuple[int | None, int], int] = {}
    negative = 0
    for number in numbers:
        cell, count = (number >> _COUNT_BITS) - 4, number & ((1 << _COUNT_BITS) - 1)
        if cell == NEGATIVE_BUCKET:
            negative += count
        elif cell >= 0:
            low, high = divmod(cell, _UPPERS)
            place = (None if low == 0 else low - 1, high)
            cells[place] = cells.get(place, 0) + count
    return LatencyCells(cells, negative, upper or 0, lower or 0)


def count_unbracketed(numbers: Iterable[int]) -> int:
    """Records without a bracket, from packed end-to-end cells."""
    return sum(
        number & ((1 << _COUNT_BITS) - 1)
        for number in numbers
        if (number >> _COUNT_BITS) - 4 == UNBRACKETED_BUCKET
    )


def unpack_row(row: Row) -> tuple[LatencyCells, LatencyCells, int]:
    """End-to-end and transfer histograms of a tallied row, and its records without a bracket."""
    return (
        unpack_cells(row.e_cells, row.e_upper, row.e_lower),
        unpack_cells(row.x_cells, row.x_upper, row.x_lower),
        count_unbracketed(row.e_cells),
    )


def _cell(lower: Column, upper: Column) -> Column:
    low = F.when(lower.isNull(), 0).otherwise(latency_bucket(F.greatest(lower, F.lit(0))) + 1)
    return F.when(upper < 0, NEGATIVE_BUCKET).otherwise(low * _UPPERS + latency_bucket(upper))


PART_ROWS: Final = 1_000_000
"""Rows of both sides that one task sorts efficiently."""
UNORDERED_PART_ROWS: Final = 200_000
"""The same without order, where parts need no second pass: small hash tables, without a spill."""
_MAX_PARTS: Final = 1 << 12
_SHARES_PER_TASK: Final = 2

Parts = dict[tuple[int, int], int]
"""Number of parts by topic and partition; partitions with one part are left out."""


class PartOffsets(NamedTuple):
    part: int
    s_low: int
    s_high: int
    t_low: int
    t_high: int


def plan_parts(units: Units, parallelism: int, share: float = 1.0) -> Parts:
    """Split partitions that would delay the others, by the number of their offsets.

    *share*: of the records that were landed.
    """
    rows: Counter[tuple[int, int]] = Counter()
    for unit in units.scopes:
        for copied in unit.partitions:
            rows[unit.index, copied.partition] += copied.end - copied.read_from
        for each in (one for flow in unit.flows for one in flow.partitions):
            rows[unit.index, each.partition] += each.end - each.read_from
    if not units.where(judges_order):
        most, least = UNORDERED_PART_ROWS, 0.0
    else:
        most, least = PART_ROWS, rows.total() / (parallelism * _SHARES_PER_TASK)
    return {
        place: min(_MAX_PARTS, math.ceil(number * share / most))
        for place, number in rows.items()
        if number * share > most and number > least
    }


def part_column(units: Units, found: Parts) -> Column:
    """The part of a record by its `ts`."""
    if not found:
        return F.lit(0).cast("bigint")
    start = units.per_unit(lambda each: each.window.start)
    end = units.per_unit(lambda each: each.window.end)
    inside = F.greatest(start, F.least(F.col("ts"), end - 1)) - start
    return F.coalesce(F.call_function("div", inside * _part_number(found), end - start), F.lit(0))


def all_parts(found: Parts) -> Column:
    """All parts of a partition as an array: a poll belongs to each of them."""
    last = F.coalesce(_part_number(found), F.lit(1)) - 1
    return F.sequence(F.lit(0).cast("bigint"), last)


def find_overlaps(
    spans: Iterable[PartOffsets],
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Source and target ranges (ends included) in which parts of one lane overlap.

    If one of two records in different parts overtook the other, both are in one of these ranges.
    """
    source: list[tuple[int, int]] = []
    target: list[tuple[int, int]] = []
    s_high = t_high = -1
    for each in sorted(spans):
        if s_high > each.s_low:
            source.append((each.s_low, s_high))
        if t_high > each.t_low:
            target.append((each.t_low, t_high))
        s_high, t_high = max(s_high, each.s_high), max(t_high, each.t_high)
    return source, target


def _part_number(found: Mapping[tuple[int, int], int]) -> Column:
    """The number of parts; null for one."""
    listed: list[list[int | None]] = [[] for _ in range(max(topic for topic, _ in found) + 1)]
    for (topic, partition), number in found.items():
        of_topic = listed[topic]
        of_topic.extend([None] * (partition + 1 - len(of_topic)))
        of_topic[partition] = number
    numbers = F.from_json(F.lit(json.dumps(listed)), "array<array<bigint>>")
    return F.get(F.get(numbers, F.col("topic")), F.col("partition"))
