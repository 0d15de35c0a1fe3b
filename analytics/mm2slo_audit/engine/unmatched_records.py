"""Records without a counterpart: missing on the target, duplicated, or unexplained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.bucket_pairs import pair_in_buckets
from mm2slo_audit.engine.group_columns import GROUP, add_group_columns
from mm2slo_audit.engine.record_schema import SOURCE
from mm2slo_audit.engine.unit_columns import compares_records

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mm2slo_audit.engine.unit_columns import Units

MISSING: Final = 0
DUPLICATED: Final = 1
UNEXPLAINED: Final = 2
_FLOW_BITS: Final = 32

COLUMNS: Final = (
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
    "decided",
)


def find_unmatched(records: DataFrame, units: Units, *, decided: bool = False) -> DataFrame:
    """Each record without a counterpart, with `kind` and, for duplicates, the owner of its group.

    *decided*: `match_tally` has already counted single records (`group_marks.DECIDED`); column
    `decided` says which.
    """
    bucketed = units.where(lambda each: each.bucketed)
    others = units.where(lambda each: not each.bucketed)
    if not bucketed:
        return _unbalanced(records, others, decided=decided)
    unpaired = _unpaired(records, bucketed)
    if not others:
        return unpaired
    return unpaired.unionByName(_unbalanced(records, others, decided=decided))


def _unbalanced(records: DataFrame, units: Units, *, decided: bool) -> DataFrame:
    """Find them by counts: only groups that do not balance are joined back to their records."""
    source = F.col("side") == SOURCE
    rows = add_group_columns(records, units)
    unbalanced = (
        rows.groupBy(*GROUP)
        .agg(
            F.count(F.when(source, 1)).alias("ns"),
            F.count(F.when(~source, 1)).alias("nd"),
            F.min(F.when(source, _home())).alias("owner"),
        )
        .where("ns != nd")
    )
    # The few unbalanced groups build the hash table, and nothing is sorted.
    joined = rows.join(unbalanced.hint("shuffle_hash"), on=list(GROUP), how="inner")
    place = Window.partitionBy(*GROUP, "side").orderBy("flow", "partition", "offset")
    surplus = F.row_number().over(place) > F.least("ns", "nd")
    alone = F.col("ns") + F.col("nd") == 1
    return _of_kind(joined.withColumn("surplus", surplus).where("surplus"), F.lit(decided) & alone)


def _unpaired(records: DataFrame, units: Units) -> DataFrame:
    """Find them by buckets: a group that balances may not balance in each bucket."""
    source = F.col("side") == SOURCE
    of_group = Window.partitionBy(*GROUP)
    rows = pair_in_buckets(records, units).withColumns(
        {
            "ns": F.count(F.when(source, 1)).over(of_group),
            "owner": F.min(F.when(source, _home())).over(of_group),
        }
    )
    return _of_kind(rows.where("not paired"), F.lit(False))


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
        .agg(F.min(_home()).alias("elsewhere"))
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
        }
    ).select(*COLUMNS)


def _owner_flow(owner: Column) -> Column:
    return F.shiftright(owner, _FLOW_BITS).cast("int")


def _owner_partition(owner: Column) -> Column:
    return F.pmod(owner, F.lit(1 << _FLOW_BITS)).cast("int")


def _home() -> Column:
    return F.shiftleft(F.col("flow").cast("bigint"), _FLOW_BITS) + F.col("partition")


def _of_kind(surplus: DataFrame, decided: Column) -> DataFrame:
    source = F.col("side") == SOURCE
    kind = F.when(source, MISSING).when(F.col("ns") > 0, DUPLICATED).otherwise(UNEXPLAINED)
    return surplus.withColumns(
        {
            "kind": kind,
            "owner_flow": _owner_flow(F.col("owner")),
            "owner_partition": _owner_partition(F.col("owner")),
            "decided": decided,
        }
    ).select(*COLUMNS)
