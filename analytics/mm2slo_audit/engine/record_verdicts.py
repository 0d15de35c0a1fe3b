"""Verdicts on records without a counterpart, and on copies.

First the records without a counterpart, missing, duplicated or unexplained, and verdicts on them.
Equal records whose timestamps differ are first paired by the cuts of their partition: the algorithm
of `reference_audit` as window functions. All of them partition by the group columns and more, so
one exchange serves them all.

Then verdicts on copies: duplicates and replayed blocks, late copies, unmasked records. A copy is
late if an earlier audit read the target before it arrived, and unmasked if it arrived with a part
that the flow must change.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.unit_columns import (
    GROUP,
    SOURCE,
    TARGET,
    Units,
    add_group_columns,
    compares_records,
    literal_table,
    source_table,
    target_table,
)
from mm2slo_core.audit.audit_scope import Comparison, UnitScope
from mm2slo_core.audit.unit_outcome import Verdict

MISSING: Final = 0
DUPLICATED: Final = 1
UNEXPLAINED: Final = 2
_FLOW_BITS: Final = 32

UNMATCHED_COLUMNS: Final = (
    "topic",
    "kind",
    "flow",
    "partition",
    "offset",
    "ts",
    "fp",
    "kh",
    "group_partition",
    "group_ts",
    "owner_flow",
    "owner_partition",
    "equal_records",
    "decided",
)


def find_unmatched(records: DataFrame, units: Units, *, decided: bool = False) -> DataFrame:
    """Each record without a counterpart, with `kind` and, for duplicates, the owner of its group.

    `equal_records`: how many source records the group has.
    *decided*: `match_tally` has already counted single records (`group_marks.DECIDED`); column
    `decided` says which.
    """
    bucketed = units.where(lambda each: each.bucketed)
    others = units.where(lambda each: not each.bucketed)
    if not bucketed:
        return _find_unbalanced(records, others, decided=decided)
    unpaired = _find_unpaired(records, bucketed)
    if not others:
        return unpaired
    return unpaired.unionByName(_find_unbalanced(records, others, decided=decided))


def _find_unbalanced(records: DataFrame, units: Units, *, decided: bool) -> DataFrame:
    """Find them by counts: only groups that do not balance are joined back to their records."""
    source = F.col("side") == SOURCE
    rows = add_group_columns(records, units)
    unbalanced = (
        rows.groupBy(*GROUP)
        .agg(
            F.count(F.when(source, 1)).alias("ns"),
            F.count(F.when(~source, 1)).alias("nd"),
            F.min(F.when(source, _owner_place())).alias("owner"),
        )
        .where("ns != nd")
    )
    # The few unbalanced groups build the hash table, and nothing is sorted.
    joined = rows.join(unbalanced.hint("shuffle_hash"), on=list(GROUP), how="inner")
    place = Window.partitionBy(*GROUP, "side").orderBy("flow", "partition", "offset")
    surplus = F.row_number().over(place) > F.least("ns", "nd")
    alone = F.col("ns") + F.col("nd") == 1
    return _add_kind(joined.withColumn("surplus", surplus).where("surplus"), F.lit(decided) & alone)


def _find_unpaired(records: DataFrame, units: Units) -> DataFrame:
    """Find them by buckets: a group that balances may not balance in each bucket."""
    source = F.col("side") == SOURCE
    of_group = Window.partitionBy(*GROUP)
    rows = pair_in_buckets(records, units).withColumns(
        {
            "ns": F.count(F.when(source, 1)).over(of_group),
            "owner": F.min(F.when(source, _owner_place())).over(of_group),
        }
    )
    return _add_kind(rows.where("not paired"), F.lit(False))


def claim_copies_elsewhere(leftover: DataFrame, records: DataFrame, units: Units) -> DataFrame:
    """*leftover* with copies of records of another partition as duplicates, not unexplained.

    The copies of a missing record are first paired with it: it moved. *leftover* is read twice.
    """
    alike = Window.partitionBy("topic", "group_ts", "fp")
    missing, unexplained = F.col("kind") == MISSING, F.col("kind") == UNEXPLAINED
    place = Window.partitionBy("topic", "group_ts", "fp", "kind").orderBy("partition", "offset")
    compared = units.where(lambda each: compares_records(each) and len(each.partitions) > 1)
    if not compared:
        return leftover
    wanted = compared.of(leftover).where(unexplained & units.judged).select("topic", "fp")
    sources = compared.of(records).where(F.col("side") == SOURCE)
    owners = (
        sources.join(wanted.distinct(), on=["topic", "fp"], how="left_semi")
        .withColumn("group_ts", compared.group_ts)
        .groupBy("topic", "group_ts", "fp")
        .agg(F.min(_owner_place()).alias("elsewhere"), F.count("*").alias("equal_elsewhere"))
    )
    rows = leftover.withColumns(
        {"absent": F.count(F.when(missing, 1)).over(alike), "k": F.row_number().over(place)}
    ).join(owners, on=["topic", "group_ts", "fp"], how="left")
    surplus = unexplained & units.judged & (F.col("k") > F.col("absent"))
    owner = F.when(surplus, F.col("elsewhere"))
    again = owner.isNotNull()
    return rows.withColumns(
        {
            "kind": F.when(again, DUPLICATED).otherwise(F.col("kind")),
            "owner_flow": F.coalesce(_owner_flow(owner), "owner_flow"),
            "owner_partition": F.coalesce(_owner_partition(owner), "owner_partition"),
            "equal_records": F.when(again, F.col("equal_elsewhere")).otherwise(
                F.col("equal_records")
            ),
        }
    ).select(*UNMATCHED_COLUMNS)


def _owner_flow(owner: Column) -> Column:
    return F.shiftright(owner, _FLOW_BITS).cast("int")


def _owner_partition(owner: Column) -> Column:
    return F.pmod(owner, F.lit(1 << _FLOW_BITS)).cast("int")


def _owner_place() -> Column:
    return F.shiftleft(F.col("flow").cast("bigint"), _FLOW_BITS) + F.col("partition")


def _add_kind(surplus: DataFrame, decided: Column) -> DataFrame:
    source = F.col("side") == SOURCE
    kind = F.when(source, MISSING).when(F.col("ns") > 0, DUPLICATED).otherwise(UNEXPLAINED)
    return surplus.withColumns(
        {
            "kind": kind,
            "owner_flow": _owner_flow(F.col("owner")),
            "owner_partition": _owner_partition(F.col("owner")),
            "equal_records": F.col("ns"),
            "decided": decided,
        }
    ).select(*UNMATCHED_COLUMNS)


_EQUAL_RECORDS: Final = ("topic", "group_partition", "fp")
"""`GROUP` without the timestamp: a literal here, which Spark removes from windows but not from the
exchange, so it would exchange again for each window."""

_END: Final = 1 << 62
"""Greater than any offset."""

_EDGES: Final = (
    "of_topic int, of_side int, of_partition int, start bigint, until bigint, bucket int"
)


def pair_in_buckets(records: DataFrame, units: Units) -> DataFrame:
    """The records of bucketed *units*, with the columns of `GROUP`.

    Adds `paired` (whether the record has a counterpart) and `k`: the k-th paired record of the
    source belongs to the k-th of the target.
    """
    rows = _add_buckets(add_group_columns(records, units), units).repartition(*_EQUAL_RECORDS)
    rows = rows.withColumn("paired", F.lit(False))
    bucket = F.col("bucket")
    for cell in (bucket, F.shiftright(bucket, 1), F.shiftright(bucket + 1, 1)):
        rows = rows.withColumn("cell", F.when(~F.col("paired"), cell))
        alike = Window.partitionBy(*_EQUAL_RECORDS, "cell")
        fewer = F.least(
            *(F.count(F.when(F.col("side") == side, 1)).over(alike) for side in (SOURCE, TARGET))
        )
        # In this order one sort serves both.
        rows = rows.withColumn("rank", _rank("cell")).withColumn("fewer", fewer)
        rows = rows.withColumn("paired", F.col("paired") | (F.col("rank") <= F.col("fewer")))
    return rows.withColumn("k", _rank("paired")).drop("bucket", "cell", "rank", "fewer")


def _rank(column: str) -> Column:
    return F.row_number().over(
        Window.partitionBy(*_EQUAL_RECORDS, column, "side").orderBy("offset")
    )


def _add_buckets(rows: DataFrame, units: Units) -> DataFrame:
    edges = (edge for unit in units.scopes for edge in _edges(unit))
    found = rows.join(
        F.broadcast(literal_table(rows.sparkSession, edges, _EDGES)),
        on=(F.col("topic") == F.col("of_topic"))
        & (F.col("side") == F.col("of_side"))
        & (F.col("partition") == F.col("of_partition"))
        & (F.col("offset") >= F.col("start"))
        & (F.col("offset") < F.col("until")),
        how="left",
    )
    return found.fillna(0, ["bucket"]).drop("of_topic", "of_side", "of_partition", "start", "until")


def _edges(unit: UnitScope) -> Iterator[tuple[int, ...]]:
    """Start and end of each bucket but the first, on both sides."""
    (flow,) = unit.flows
    for source in flow.partitions:
        for side, edges in (
            (SOURCE, [cut.upstream for cut in source.cuts]),
            (TARGET, [cut.downstream for cut in source.cuts]),
        ):
            ends = [*edges[1:], _END]
            for bucket, (start, until) in enumerate(zip(edges, ends, strict=False), 1):
                yield unit.index, side, source.partition, start, until, bucket


VERDICTS: Final = tuple(Verdict)
"""Verdict codes are indexes of this list."""

VERDICT_COLUMNS: Final = (
    "topic",
    "verdict",
    "cell_flow",
    "cell_partition",
    "flow",
    "partition",
    "offset",
    "ts",
    "fp",
    "kh",
    "other_partition",
    "other_offset",
    "weight",
    "block",
    "block_end",
    "block_size",
    "equal_records",
)
"""Columns of a verdict: the partition that counts it (`cell_flow` null: a target partition), then
its evidence. `weight` is added to the count: 0 if already counted, -1 to undo a count (not
evidence). `block_end` and `block_size` describe its replay; `equal_records` is of copies: how many
source records are equal to it."""


def verdict_code(verdict: Verdict) -> int:
    return VERDICTS.index(verdict)


def verdict_rows(
    rows: DataFrame,
    verdict: Column,
    *,
    copy: tuple[Column, Column],
    weight: Column,
    cell_flow: Column | None = None,
) -> DataFrame:
    """`VERDICT_COLUMNS` of records that are no replays; *copy* is partition and offset.

    The records are counted by their own flow, or by *cell_flow*.
    """
    partition, offset = copy
    return rows.select(
        "topic",
        verdict.alias("verdict"),
        (F.col("flow") if cell_flow is None else cell_flow).alias("cell_flow"),
        F.col("partition").alias("cell_partition"),
        "flow",
        "partition",
        "offset",
        "ts",
        "fp",
        "kh",
        partition.alias("other_partition"),
        offset.alias("other_offset"),
        weight.alias("weight"),
        *(F.lit(None).cast("bigint").alias(each) for each in VERDICT_COLUMNS[-4:]),
    )


def judge_leftover(spark: SparkSession, leftover: DataFrame, units: Units) -> DataFrame:
    """Verdicts (`VERDICT_COLUMNS`) on missing and unexplained records, also outside the window."""
    # A duplicate that is decided was counted as extra before its record was found elsewhere.
    rows = leftover.where(F.col("kind").isin(MISSING, UNEXPLAINED) | F.col("decided"))
    moved = _pair_leftover(
        rows, "moved", ("topic", "group_ts", "fp"), units.flag_per_unit(compares_records)
    )
    altered = _pair_leftover(
        moved,
        "altered",
        ("topic", "moved", "ts", "kh", "neighbourhood"),
        ~F.col("moved") & units.flag_per_unit(lambda each: each.identity.timestamp),
        # Records without a key are distinguished by their partition, where that is comparable.
        neighbourhood=F.when(F.col("kh").isNull(), F.col("group_partition")),
    )
    missing = altered.where(F.col("kind") == MISSING).join(
        F.broadcast(source_table(spark, units)), on=["topic", "flow", "partition"], how="left"
    )
    again = F.col("kind") == DUPLICATED
    paired, decided = F.col("moved") | F.col("altered") | again, F.col("decided")
    foreign = altered.where((F.col("kind") != MISSING) & (~paired | decided)).join(
        F.broadcast(target_table(spark, units)), on=["topic", "partition"], how="left"
    )
    offset = F.col("offset")
    age = units.per_unit(lambda each: each.taken_at) - F.col("ts")
    still_open = (
        F.when(offset < F.col("known_from"), verdict_code(Verdict.UNAUDITABLE))
        .when(offset < F.col("next_offset"), verdict_code(Verdict.LOST))
        .when(age > units.per_unit(lambda each: each.max_pending), verdict_code(Verdict.OVERDUE))
        .otherwise(verdict_code(Verdict.PENDING))
    )
    on_source = (
        F.when(F.col("moved"), verdict_code(Verdict.MOVED))
        .when(F.col("altered"), verdict_code(Verdict.ALTERED))
        .otherwise(still_open)
    )
    on_target = F.when(
        offset < F.col("auditable_from"), verdict_code(Verdict.UNAUDITABLE)
    ).otherwise(verdict_code(Verdict.EXTRA))
    # A verdict decided before the record was found elsewhere is undone.
    verdicts = F.when(
        decided & paired,
        F.array(_weighted_verdict(on_source, F.lit(1)), _weighted_verdict(still_open, F.lit(-1))),
    ).otherwise(F.array(_weighted_verdict(on_source, F.when(decided, 0).otherwise(1))))
    weight = F.when(paired, -1).when(decided, 0).otherwise(1)
    return _leftover_rows(
        missing.withColumn("judgement", F.explode(verdicts)), F.col("flow")
    ).unionByName(
        _leftover_rows(
            foreign.withColumn("judgement", _weighted_verdict(on_target, weight)),
            F.lit(None).cast("int"),
        )
    )


def _weighted_verdict(verdict: Column, weight: Column) -> Column:
    return F.struct(verdict.alias("verdict"), weight.alias("weight"))


def _leftover_rows(rows: DataFrame, flow: Column) -> DataFrame:
    return verdict_rows(
        rows,
        F.col("judgement.verdict"),
        copy=(
            F.coalesce("moved_partition", "altered_partition"),
            F.coalesce("moved_offset", "altered_offset"),
        ),
        weight=F.col("judgement.weight"),
        cell_flow=flow,
    )


def _pair_leftover(
    rows: DataFrame,
    name: str,
    trait: tuple[str, ...],
    eligible: Column,
    *,
    neighbourhood: Column | None = None,
) -> DataFrame:
    """Pair missing and unexplained records of one *trait*, the k-th with the k-th.

    Adds *name* (whether it is in a pair) and the place of a missing record's counterpart.
    """
    if neighbourhood is not None:
        rows = rows.withColumn("neighbourhood", neighbourhood)
    alike = Window.partitionBy(*trait)
    in_order = Window.partitionBy(*trait, "kind").orderBy("flow", "partition", "offset")
    of_missing, of_unexplained = (
        F.count(F.when(F.col("kind") == kind, 1)).over(alike) for kind in (MISSING, UNEXPLAINED)
    )
    counted = rows.withColumns(
        {"fewer": F.least(of_missing, of_unexplained), "k": F.row_number().over(in_order)}
    )
    couple = Window.partitionBy(*trait, "k")
    joined = eligible & (F.col("k") <= F.col("fewer"))
    other = {
        f"{name}_{each}": F.when(
            joined, F.max(F.when(F.col("kind") == UNEXPLAINED, F.col(each))).over(couple)
        )
        for each in ("partition", "offset")
    }
    return counted.withColumns({name: joined, **other}).drop("fewer", "k")


_PARTITION: Final = ("topic", "partition")
_RECORD_PLACE: Final = (*_PARTITION, "offset")
_RUN: Final = (*_PARTITION, "before")

_BLOCK_BITS: Final = 3
"""A block has eight offsets."""

_BLOCKS_READ: Final = 2
"""Blocks, from that of a copy on, in which its successor was read for sure."""

_BROADCAST_MAX: Final = 1_000_000
"""Copies that fit into the memory of every executor."""


def judge_duplicates(
    records: DataFrame,
    leftover: DataFrame,
    units: Units,
    *,
    census: bool,
    keep: Callable[[DataFrame], DataFrame],
) -> DataFrame:
    """Verdicts on duplicates, inside and outside the window, in `VERDICT_COLUMNS`.

    A replay is a run of two or more duplicates with no other target record between them; only a
    census reads all records between. Its offsets are those of records in the window. *keep* caches
    a frame that is used twice.
    """
    copies = leftover.where(F.col("kind") == DUPLICATED).select(
        *_RECORD_PLACE, "owner_flow", "owner_partition", "equal_records", "ts", "fp", "kh"
    )
    number = copies.count() if census else 0
    if number:
        few = number <= _BROADCAST_MAX
        copies = _find_runs(records, copies, units, keep, few=few)
    else:
        none = F.lit(None).cast("bigint")
        copies = copies.withColumns({"block": none, "block_end": none, "block_size": none})
    verdict = F.when(F.col("block").isNull(), verdict_code(Verdict.DUPLICATE)).otherwise(
        verdict_code(Verdict.REPLAY)
    )
    return copies.select(
        "topic",
        verdict.alias("verdict"),
        F.col("owner_flow").alias("cell_flow"),
        F.col("owner_partition").alias("cell_partition"),
        F.col("owner_flow").alias("flow"),
        "partition",
        "offset",
        "ts",
        "fp",
        "kh",
        F.lit(None).cast("int").alias("other_partition"),
        F.lit(None).cast("bigint").alias("other_offset"),
        F.lit(1).alias("weight"),
        "block",
        "block_end",
        "block_size",
        "equal_records",
    )


def count_copied_again(copies: DataFrame) -> DataFrame:
    """`copied_again` by topic, from verdicts on *copies*; `reference_audit` has the rule."""
    alike = copies.groupBy("topic", "cell_partition", "fp").agg(
        F.least(F.max("equal_records"), F.count("*")).alias("records")
    )
    return alike.groupBy("topic").agg(F.sum("records").alias("copied_again"))


def _find_runs(
    records: DataFrame,
    copies: DataFrame,
    units: Units,
    keep: Callable[[DataFrame], DataFrame],
    *,
    few: bool,
) -> DataFrame:
    """Copies with the run that each belongs to.

    Records between two copies are searched close behind the first, in one scan; where none is read
    there, the whole partition is read.
    """
    targets = units.of(records).where(F.col("side") == TARGET).select(*_RECORD_PLACE)
    block = F.shiftright("offset", _BLOCK_BITS)
    behind = copies.select(
        "topic", "partition", F.explode(F.array(block, block + 1)).alias("block")
    ).distinct()
    near = targets.withColumn("block", block).join(
        behind.hint("broadcast" if few else "shuffle_hash"),
        on=["topic", "partition", "block"],
        how="left_semi",
    )
    numbered = keep(_number_copies(near.select(*_RECORD_PLACE), copies))
    in_order = Window.partitionBy(*_RUN).orderBy("offset")
    unseen = block - F.shiftright(F.lag("offset").over(in_order), _BLOCK_BITS) > _BLOCKS_READ
    doubtful = numbered.withColumn("unseen", unseen).where("unseen").select(*_PARTITION).distinct()
    if not doubtful.isEmpty():
        all_of_it = targets.join(doubtful, on=list(_PARTITION), how="left_semi")
        numbered = numbered.join(doubtful, on=list(_PARTITION), how="left_anti").unionByName(
            _number_copies(all_of_it, copies)
        )
    run = Window.partitionBy(*_RUN)
    judged = F.when(units.judged, F.col("offset"))
    in_run = F.count("*").over(run) > 1
    return numbered.withColumns(
        {
            "block": F.when(in_run, F.min(judged).over(run)),
            "block_end": F.when(in_run, F.max(judged).over(run) + 1),
            "block_size": F.when(in_run, F.count(judged).over(run)),
        }
    )


def _number_copies(targets: DataFrame, copies: DataFrame) -> DataFrame:
    """Copies with the number of other target records before them; equal within a run."""
    flagged = targets.join(copies.withColumn("copy", F.lit(1)), on=list(_RECORD_PLACE), how="left")
    until_here = (
        Window.partitionBy(*_PARTITION)
        .orderBy("offset")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    others = F.count(F.when(F.col("copy").isNull(), 1)).over(until_here)
    return flagged.withColumn("before", others).where("copy = 1")


def is_late(
    units: Units, source: str = "offset", copy: str = "t_offset", copied_to: str = "t_partition"
) -> Column:
    """Whether a pair is late, from columns topic, flow, partition, ts, and offsets as named."""
    most = max((len(_earlier_scopes(each)) for each in units.scopes), default=0)
    found = (
        _was_missing(units, number, F.col(source), F.col(copy), copied_to) for number in range(most)
    )
    return F.coalesce(reduce(or_, found, F.lit(False)), F.lit(False))


def judge_late(pairs: DataFrame, units: Units) -> DataFrame:
    """Evidence of late copies in `VERDICT_COLUMNS`; the tallies have counted them."""
    return verdict_rows(
        units.of(pairs).where(is_late(units)),
        F.lit(verdict_code(Verdict.LATE)),
        copy=(F.col("t_partition"), F.col("t_offset")),
        weight=F.lit(0),
    )


def _earlier_scopes(unit: UnitScope) -> tuple[UnitScope, ...]:
    return unit.earlier if unit.comparison is not Comparison.LATEST else ()


def _was_missing(units: Units, number: int, offset: Column, copy: Column, copied_to: str) -> Column:
    def of(unit: UnitScope, name: str) -> int | None:
        earlier = _earlier_scopes(unit)
        if number >= len(earlier):
            return None
        window = earlier[number].window
        values = {"start": window.start, "end": window.end}
        return values[name] if name in values else getattr(earlier[number], name)

    def of_source(unit: UnitScope, name: str) -> list[Mapping[int, int | None]]:
        earlier = _earlier_scopes(unit)
        by_flow = {} if number >= len(earlier) else {e.flow: e for e in earlier[number].flows}
        return [
            {each.partition: getattr(each, name) for each in by_flow[flow.flow].partitions}
            if flow.flow in by_flow
            else {}
            for flow in unit.flows
        ]

    def of_target(unit: UnitScope) -> list[Mapping[int, int | None]]:
        earlier = _earlier_scopes(unit)
        if number >= len(earlier):
            return []
        return [{each.partition: each.end for each in earlier[number].partitions}]

    start, end, taken_at, max_pending = (
        units.per_unit(lambda unit, of_name=name: of(unit, of_name))  # type: ignore[misc]
        for name in ("start", "end", "taken_at", "max_pending")
    )
    known_from, source_end, next_offset = (
        units.per_partition(
            lambda unit, of_name=name: of_source(unit, of_name),  # type: ignore[misc]
            F.col("flow"),
        )
        for name in ("known_from", "end", "next_offset")
    )
    target_end = F.coalesce(units.per_partition(of_target, F.lit(0), copied_to), F.lit(0))
    ts = F.col("ts")
    due = F.coalesce(offset < next_offset, F.lit(False)) | (taken_at - ts > max_pending)
    within = (ts >= start) & (ts < end) & (offset >= known_from) & (offset < source_end)
    return F.coalesce(within & (copy >= target_end) & due, F.lit(False))


_SAME_PART: Final = ("topic", "group_ts", "fp", "content")
_OFFSET_ORDER: Final = ("flow", "partition", "offset")


def judge_unmasked(records: DataFrame, units: Units) -> DataFrame:
    """Verdicts on *records* with an unchanged part, in `VERDICT_COLUMNS`."""
    parts = (
        units.of(records)
        .withColumn("group_ts", units.group_ts)
        .withColumn("content", F.explode("masked"))
    )
    in_order = Window.partitionBy(*_SAME_PART, "side").orderBy(*_OFFSET_ORDER)
    source = F.col("side") == SOURCE
    pairs = (
        parts.withColumn("k", F.row_number().over(in_order))
        .groupBy(*_SAME_PART, "k")
        .agg(
            *(
                F.max(F.when(source, F.col(each))).alias(each)
                for each in (*_OFFSET_ORDER, "ts", "kh")
            ),
            *(
                F.max(F.when(~source, F.col(each))).alias(f"other_{each}")
                for each in ("partition", "offset")
            ),
        )
        .where("offset is not null and other_offset is not null")
    )
    of_record = Window.partitionBy("topic", *_OFFSET_ORDER)
    first = F.row_number().over(of_record.orderBy("other_partition", "other_offset")) == 1
    return verdict_rows(
        pairs.withColumn("first", first).where("first"),
        F.lit(verdict_code(Verdict.UNMASKED)),
        copy=(F.col("other_partition"), F.col("other_offset")),
        weight=F.lit(1),
    )
