"""All units of a run judged, in as few passes as what they hold allows.

A clean unit of plain records takes one pass (`matching`) and one over its keys. What does not
balance is looked at record by record, and only then.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.affinity import affinity_tally, keys
from mm2slo_audit.engine.fates import code, fates
from mm2slo_audit.engine.latest import latest, latest_leftover
from mm2slo_audit.engine.matching import matchable, tally
from mm2slo_audit.engine.outcomes import UnitLedger
from mm2slo_audit.engine.pairing import (
    bracketed,
    disorder,
    disordered_keys,
    pair_tally,
    pairs,
    source_bytes,
)
from mm2slo_audit.engine.surplus import duplicates
from mm2slo_audit.engine.units import Units, judges_order, table
from mm2slo_audit.engine.unmatched import unmatched
from mm2slo_core.audit.scope import Comparison
from mm2slo_core.audit.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from mm2slo_core.audit.outcome import UnitOutcome
    from mm2slo_core.audit.sampling import Sample
    from mm2slo_core.audit.scope import UnitScope

_UNREMARKABLE = (Verdict.MATCHED, Verdict.PENDING, Verdict.UNAUDITABLE)
_PARTITIONS_PER_CORE = 32
"""Of the exchange: smaller hash tables stay in the caches."""

_Place = tuple[int, int]
"""Topic and partition."""


def judge(
    spark: SparkSession,
    records: DataFrame,
    polls: DataFrame,
    scopes: Sequence[UnitScope],
    sample: Sample,
    *,
    evidence_cap: int | None = 100,
    partitions: int | None = None,
) -> list[UnitOutcome]:
    """Judge the units of *scopes* as `mm2slo_core.audit.reference.judge` does, in that order.

    *records* and *polls* have the columns of `AuditRecord` and `ArrivalPoll`; read them from
    storage that can be read again, for anomalies take a second pass. *evidence_cap* limits
    evidence per unit and verdict, and broken keys; None: all. *partitions*: of the exchange; None:
    by the cores of the cluster.
    """
    units = Units(tuple(scopes))
    if not units:
        return []
    with ExitStack() as kept:
        judging = _Judging(
            spark=spark,
            records=records,
            polls=polls,
            units=units,
            census=sample.census,
            cap=evidence_cap,
            partitions=partitions or _partitions(spark, units),
            ledgers={each.index: UnitLedger(each) for each in units.scopes},
            kept=kept,
        )
        judging.run()
        return [judging.ledgers[each.index].outcome() for each in units.scopes]


@dataclass(frozen=True)
class _Judging:
    """One call of `judge`."""

    spark: SparkSession
    records: DataFrame
    polls: DataFrame
    units: Units
    census: bool
    cap: int | None
    partitions: int
    ledgers: dict[int, UnitLedger]
    kept: ExitStack

    def run(self) -> None:
        fast = self.units.where(matchable)
        latest_units = self.units.where(lambda each: each.comparison is Comparison.LATEST)
        exact = self.units.where(
            lambda each: not matchable(each) and each.comparison is not Comparison.LATEST
        )
        uneven, unclear = self._match(fast) if fast else (set(), set())
        in_records = self.records.where("in_records")
        found = []
        paired = self._pair(in_records, exact, unclear)
        if paired is not None:
            found.append(disorder(paired, self.units.where(judges_order)))
        leftover = []
        compared = Units((*exact.scopes, *fast.where(lambda each: each.index in uneven).scopes))
        if compared:
            leftover.append(unmatched(in_records, compared))
        if latest_units:
            leftover.append(self._latest(latest_units))
        if leftover:
            over = self._keep(_union(leftover))
            found.append(fates(self.spark, over, self.units))
            if compared:
                found.append(duplicates(in_records, over, compared, census=self.census))
        if found:
            self._take(self._keep(_union(found).where(self.units.judged)))
        self._judge_keys(paired)

    def _match(self, fast: Units) -> tuple[set[int], set[_Place]]:
        """Tally plain units; units that do not balance, and places that counts do not tell."""
        uneven, unclear = set(), set()
        for row in tally(self.records, self.polls, fast, self.partitions).collect():
            ledger = self.ledgers[row.topic]
            if row.flow is not None:
                ledger.take_tally(row)
                ledger.take_bytes(row)
            if row.missing or row.duplicated or row.unexplained:
                uneven.add(row.topic)
            if row.repeated or (row.overtaken and judges_order(ledger.scope)):
                unclear.add((row.topic, row.partition))
        return uneven, unclear

    def _pair(self, in_records: DataFrame, exact: Units, unclear: set[_Place]) -> DataFrame | None:
        places = unclear.union(*map(_places, exact.scopes))
        if not places:
            return None
        topics = {topic for topic, _ in places}
        units = self.units.where(lambda each: each.index in topics)
        chosen = F.broadcast(table(self.spark, sorted(places), "topic int, partition int"))
        rows = units.of(in_records).join(chosen, on=["topic", "partition"], how="left_semi")
        found = self._keep(pairs(bracketed(rows, self.polls, units), units))
        for topic, partition in places:
            self.ledgers[topic].forget_tally(partition)
        for row in pair_tally(found, units).collect():
            self.ledgers[row.topic].take_tally(row)
        uncounted = units.where(lambda each: not matchable(each) or len(each.flows) > 1)
        if uncounted:
            self._take_bytes(rows, uncounted)
        return found

    def _latest(self, units: Units) -> DataFrame:
        in_keys = self.records.where("in_keys")
        self._take_bytes(in_keys, units)
        compared = self._keep(latest(bracketed(in_keys, self.polls, units), units))
        matched = compared.where("settled and offset is not null")
        copied = matched.where("t_offset is not null").withColumnsRenamed(
            {"earliest": "s_earliest", "latest": "s_latest"}
        )
        for row in pair_tally(copied, units).collect():
            self.ledgers[row.topic].take_tally(row)
        deleted = matched.where("t_offset is null").where(units.judged)
        for row in deleted.groupBy("topic", "flow", "partition").count().collect():
            self.ledgers[row.topic].take_deleted(row)
        return latest_leftover(compared, units)

    def _take_bytes(self, records: DataFrame, units: Units) -> None:
        for row in source_bytes(records, units).collect():
            self.ledgers[row.topic].take_bytes(row)

    def _take(self, found: DataFrame) -> None:
        """Counts, evidence and replays of judged verdicts."""
        counted = found.groupBy("topic", "cell_flow", "cell_partition", "verdict").agg(
            F.count("*").alias("n"), F.min("ts").alias("oldest")
        )
        replayed = False
        remarkable = False
        for row in counted.collect():
            self.ledgers[row.topic].take_count(row)
            replayed |= row.verdict == code(Verdict.REPLAY)
            remarkable |= row.verdict not in map(code, _UNREMARKABLE)
        if remarkable:
            evidence = found.where(~F.col("verdict").isin([code(each) for each in _UNREMARKABLE]))
            order = (F.coalesce("cell_flow", F.lit(0)), "partition", "offset")
            for row in _first(evidence, ("topic", "verdict"), order, self.cap).collect():
                self.ledgers[row.topic].take_evidence(row)
        if replayed:
            blocks = found.where("block is not null").select(
                "topic", "partition", "block", "block_end", "block_size"
            )
            for row in blocks.distinct().collect():
                self.ledgers[row.topic].take_replay(row)

    def _judge_keys(self, paired: DataFrame | None) -> None:
        ordered = self.units.where(judges_order)
        if not self.census and ordered:
            none = F.lit(None).cast("bigint")
            strata = self.records.where("in_keys and kh is not null")
            paired = pairs(strata.withColumns({"earliest": none, "latest": none}), ordered)
        disordered = None
        if paired is not None and ordered:
            disordered = disordered_keys(paired, ordered)
        found = self._keep(keys(self.spark, self.records, disordered, self.units))
        broken = False
        for row in affinity_tally(found, by_size=not self.census).collect():
            self.ledgers[row.topic].take_affinity(row)
            broken |= row.keys_split > 0 or row.keys_disordered > 0
        if broken:
            rows = found.where("strays > 0 or overtook > 0")
            for row in _first(rows, ("topic",), ("kh",), self.cap).collect():
                self.ledgers[row.topic].broken_keys.append(row.kh)

    def _keep(self, frame: DataFrame) -> DataFrame:
        return self.kept.enter_context(_persisted(frame))


def _places(unit: UnitScope) -> set[_Place]:
    sources = {each.partition for flow in unit.flows for each in flow.partitions}
    targets = {each.partition for each in unit.partitions}
    return {(unit.index, partition) for partition in sources | targets}


@contextmanager
def _persisted(frame: DataFrame) -> Iterator[DataFrame]:
    yield frame.persist()
    frame.unpersist()


def _first(
    frame: DataFrame, of: tuple[str, ...], order: Sequence[object], cap: int | None
) -> DataFrame:
    """The first *cap* rows of each group; Spark drops the rest before it sorts them all."""
    if cap is None:
        return frame
    place = F.row_number().over(Window.partitionBy(*of).orderBy(*order))  # type: ignore[arg-type]
    return frame.withColumn("place", place).where(F.col("place") <= cap).drop("place")


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


def _partitions(spark: SparkSession, units: Units) -> int:
    """No more than there are places to be judged, nor so many that tasks hold nothing."""
    places = sum(len(unit.partitions) for unit in units.scopes)
    return max(1, min(places, _PARTITIONS_PER_CORE * spark.sparkContext.defaultParallelism))
