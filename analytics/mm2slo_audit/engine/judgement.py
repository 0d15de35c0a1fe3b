"""Judges all units of a run in as few passes over their records as possible.

A clean plain unit takes one pass (`match_tally`) and one over its keys. Groups that counts do not
decide are read again, record by record, only in their time slices. Ledgers collect the rows that
Spark returns into the outcome of each unit.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.group_marks import (
    DUPLICATED,
    LATE,
    MISSING,
    OVERTAKEN,
    REPEATED,
    UNEXPLAINED,
    GroupMark,
)
from mm2slo_audit.engine.match_tally import (
    Parts,
    is_plain_unit,
    plan_parts,
    tally_matches,
    unpack_row,
)
from mm2slo_audit.engine.record_pairs import (
    add_arrival_brackets,
    count_by_key,
    find_disordered_keys,
    find_latest_leftover,
    judge_disorder,
    pair_newest,
    pair_records,
    sum_source_bytes,
    tally_affinity,
    tally_pairs,
)
from mm2slo_audit.engine.record_verdicts import (
    VERDICTS,
    claim_copies_elsewhere,
    count_copied_again,
    find_unmatched,
    judge_duplicates,
    judge_late,
    judge_leftover,
    judge_unmasked,
    verdict_code,
)
from mm2slo_audit.engine.second_pass import OPEN_VERDICTS, SecondPass, select_repeated
from mm2slo_audit.engine.unit_columns import Units, judges_order
from mm2slo_core.audit.audit_scope import Comparison, UnitScope
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    EVIDENCE_CAP,
    SURPLUS,
    UNREMARKABLE,
    AffinityOutcome,
    Evidence,
    KeyCell,
    LatencyCells,
    PartitionOutcome,
    ReplayEvent,
    UnitOutcome,
    Verdict,
    merge_latencies,
    pool_key_cells,
)
from mm2slo_core.records.timeline_record import Side

_OF_LATEST: Final = "in_keys OR (kh IS NULL AND in_records)"
"""Records of compacted topics. Those without a key are not in the sample of keys."""

_COPIES: Final = (verdict_code(Verdict.DUPLICATE), verdict_code(Verdict.REPLAY))


def judge(
    spark: SparkSession,
    records: DataFrame,
    polls: DataFrame | None,
    scopes: Sequence[UnitScope],
    sample: Sample,
    *,
    evidence_cap: int | None = EVIDENCE_CAP,
    partitions: int | None = None,
    split: Parts | None = None,
    poll_rows: int = 0,
) -> list[UnitOutcome]:
    """Judge the units of *scopes*, in their order; `reference_audit` is the rule.

    *records* and *polls* (None: no polls) have the columns of `AuditRecord` and
    `ArrivalPoll`, and are read twice if there are anomalies. *evidence_cap* limits evidence per
    unit and verdict, and broken keys; None: no limit. *partitions*: of the exchange; None: by the
    cores of the cluster. *split*: partitions to tally in parts; None: those much larger than the
    others, or without order all large ones. *poll_rows*: how many polls there are.
    """
    units = Units(tuple(scopes))
    if not units:
        return []
    if split is None:
        cores = spark.sparkContext.defaultParallelism
        split = plan_parts(units.where(is_plain_unit), cores, sample.share)
    with ExitStack() as kept:
        kept.enter_context(limit_shuffle_partitions(spark))
        judgement = _Judgement(
            spark=spark,
            records=records,
            polls=polls,
            units=units,
            census=sample.census,
            cap=evidence_cap,
            partitions=partitions
            or count_exchange_partitions(spark, units, split, sample.share, poll_rows),
            split=split,
            ledgers={each.index: UnitLedger(each) for each in units.scopes},
            kept=kept,
        )
        judgement.run()
        return [judgement.ledgers[each.index].outcome() for each in units.scopes]


@dataclass(frozen=True)
class _Judgement:
    """One call of `judge`."""

    spark: SparkSession
    records: DataFrame
    polls: DataFrame | None
    units: Units
    census: bool
    cap: int | None
    partitions: int
    split: Parts
    ledgers: dict[int, UnitLedger]
    kept: ExitStack

    def run(self) -> None:
        fast = self.units.where(is_plain_unit)
        latest_units = self.units.where(lambda each: each.comparison is Comparison.LATEST)
        exact = self.units.where(
            lambda each: not is_plain_unit(each) and each.comparison is not Comparison.LATEST
        )
        in_records = self.records.where("in_records")
        suspects, flags = self._match(fast) if fast else (None, 0)
        paired = self._pairs(in_records, exact, fast, suspects, flags)
        found = []
        if paired is not None:
            found.append(judge_disorder(paired, self.units.where(judges_order)))
            if aware := self.units.where(lambda each: bool(each.earlier)):
                found.append(judge_late(paired, aware))
        leftover = self._leftover(in_records, exact, suspects, flags)
        if latest_units:
            leftover.append(self._latest(latest_units))
        if leftover:
            over = self._keep(_union(leftover))
            if exact or flags & UNEXPLAINED:
                over = self._keep(claim_copies_elsewhere(over, in_records, self.units))
            found.append(judge_leftover(self.spark, over, self.units))
            if exact or flags & (DUPLICATED | UNEXPLAINED):
                compared = Units((*fast.scopes, *exact.scopes))
                found.append(
                    judge_duplicates(
                        in_records, over, compared, census=self.census, keep=self._keep
                    )
                )
        for of_kind, rows in (
            (Units((*fast.scopes, *exact.scopes)), in_records),
            (latest_units, self.records.where(_OF_LATEST)),
        ):
            masking = of_kind.where(lambda each: bool(each.identity.must_change))
            if masking:
                found.append(judge_unmasked(rows, masking))
        if found:
            self._add_verdicts(self._keep(_union(found).where(self.units.judged)))
        self._judge_keys(paired)

    def _pairs(
        self,
        in_records: DataFrame,
        exact: Units,
        fast: Units,
        suspects: DataFrame | None,
        flags: int,
    ) -> DataFrame | None:
        """Pairs whose order has to be judged."""
        paired = []
        if exact:
            paired.append(self._pair(in_records, exact))
        if suspects is not None and flags & REPEATED:
            self._tally_repeated(suspects, fast)
        if suspects is not None and flags & (OVERTAKEN | REPEATED | LATE):
            paired.append(self._keep(pair_records(_without_brackets(suspects), fast)))
        return _union(paired) if paired else None

    def _leftover(
        self, in_records: DataFrame, exact: Units, suspects: DataFrame | None, flags: int
    ) -> list[DataFrame]:
        leftover = []
        if suspects is not None and flags & (MISSING | DUPLICATED | UNEXPLAINED):
            leftover.append(find_unmatched(suspects, self.units.where(is_plain_unit), decided=True))
        if exact:
            leftover.append(find_unmatched(in_records, exact))
        return leftover

    def _match(self, fast: Units) -> tuple[DataFrame | None, int]:
        """Tally plain units; returns the records of the second pass and the flags of all marks."""
        tallied = tally_matches(
            self.records, self.polls, fast, self.partitions, self.split
        ).collect()
        for row in tallied:
            if row.flow is not None:
                self.ledgers[row.topic].add_tally(row)
                self.ledgers[row.topic].add_bytes(row)
        second = SecondPass.plan(fast, tallied, self.cap)
        for mark in second.marks:
            self.ledgers[mark.topic].add_decided(mark)
        for topic, oldest in second.selection.oldest.items():
            self.ledgers[topic].add_open(oldest)
        suspects = second.records(self.spark, self.records.where("in_records"), self._keep)
        return suspects, second.flags

    def _tally_repeated(self, suspects: DataFrame, fast: Units) -> None:
        rows = self._keep(select_repeated(suspects, fast))
        found = pair_records(add_arrival_brackets(rows, self.polls, fast), fast)
        for row in tally_pairs(found, fast).collect():
            self.ledgers[row.topic].add_tally(row)
        if any(len(each.flows) > 1 for each in fast.scopes):
            self._add_source_bytes(rows, fast)

    def _pair(self, in_records: DataFrame, exact: Units) -> DataFrame:
        found = self._keep(pair_records(add_arrival_brackets(in_records, self.polls, exact), exact))
        for row in tally_pairs(found, exact).collect():
            self.ledgers[row.topic].add_tally(row)
        self._add_source_bytes(in_records, exact)
        return found

    def _latest(self, units: Units) -> DataFrame:
        in_keys = self.records.where("in_keys")
        for row in sum_source_bytes(self.records.where(_OF_LATEST), units).collect():
            self.ledgers[row.topic].add_bytes(row)
            self.ledgers[row.topic].add_keyless(row)
        compared = self._keep(pair_newest(add_arrival_brackets(in_keys, self.polls, units), units))
        matched = compared.where("settled and offset is not null")
        copied = matched.where("t_offset is not null").withColumnsRenamed(
            {"earliest": "s_earliest", "latest": "s_latest"}
        )
        for row in tally_pairs(copied, units).collect():
            self.ledgers[row.topic].add_tally(row)
        deleted = matched.where("t_offset is null").where(units.judged)
        for row in deleted.groupBy("topic", "flow", "partition").count().collect():
            self.ledgers[row.topic].add_deleted(row)
        return find_latest_leftover(compared, units)

    def _add_source_bytes(self, records: DataFrame, units: Units) -> None:
        for row in sum_source_bytes(records, units).collect():
            self.ledgers[row.topic].add_bytes(row)

    def _add_verdicts(self, found: DataFrame) -> None:
        """Add counts, evidence and replays to the ledgers."""
        noted = F.col("weight") >= 0
        counted = found.groupBy("topic", "cell_flow", "cell_partition", "verdict").agg(
            F.sum("weight").alias("n"), F.min(F.when(noted, F.col("ts"))).alias("oldest")
        )
        copied_again = replayed = remarkable = False
        for row in counted.collect():
            self.ledgers[row.topic].add_count(row)
            copied_again |= row.verdict in _COPIES
            replayed |= row.verdict == verdict_code(Verdict.REPLAY)
            remarkable |= row.verdict not in map(verdict_code, UNREMARKABLE)
        if remarkable:
            remarkable_ones = ~F.col("verdict").isin([verdict_code(each) for each in UNREMARKABLE])
            evidence = found.where(noted & remarkable_ones)
            order = (F.coalesce("cell_flow", F.lit(0)), "partition", "offset")
            for row in _first_rows(evidence, ("topic", "verdict"), order, self.cap).collect():
                self.ledgers[row.topic].add_evidence(row)
        if copied_again:
            copies = found.where(F.col("verdict").isin(*_COPIES))
            for row in count_copied_again(copies).collect():
                self.ledgers[row.topic].copied_again = row.copied_again
        if replayed:
            blocks = found.where("block is not null").select(
                "topic", "partition", "block", "block_end", "block_size"
            )
            for row in blocks.distinct().collect():
                self.ledgers[row.topic].add_replay(row)

    def _judge_keys(self, paired: DataFrame | None) -> None:
        ordered = self.units.where(judges_order)
        if not self.census and ordered:
            strata = self.records.where("in_keys and kh is not null")
            paired = pair_records(_without_brackets(strata), ordered)
        disordered = None
        if paired is not None and ordered:
            disordered = find_disordered_keys(paired, ordered)
        found = self._keep(count_by_key(self.spark, self.records, disordered, self.units))
        broken = False
        for row in tally_affinity(found, by_size=not self.census).collect():
            self.ledgers[row.topic].add_affinity(row)
            broken |= row.keys_split > 0 or row.keys_disordered > 0
        if broken:
            rows = found.where("strays > 0 or overtook > 0")
            for row in _first_rows(rows, ("topic",), ("kh",), self.cap).collect():
                self.ledgers[row.topic].broken_keys.append(row.kh)

    def _keep(self, frame: DataFrame) -> DataFrame:
        return self.kept.enter_context(_persist(frame))


def _without_brackets(records: DataFrame) -> DataFrame:
    none = F.lit(None).cast("bigint")
    return records.withColumns({"earliest": none, "latest": none})


@contextmanager
def _persist(frame: DataFrame) -> Iterator[DataFrame]:
    if frame.sparkSession.sparkContext._jsc.sc().isLocal():
        # A leaf: Spark resolves the whole plan of a frame at each further step on it, which is a
        # quarter of the CPU of a small audit. A cluster needs the plan: it computes again what was
        # lost with an executor.
        kept = frame.localCheckpoint(eager=False)
        yield kept
        kept._jdf.queryExecution().analyzed().rdd().unpersist(False)
        return
    yield frame.persist()
    frame.unpersist()


def _first_rows(
    frame: DataFrame, of: tuple[str, ...], order: Sequence[object], cap: int | None
) -> DataFrame:
    """The first *cap* rows of each group; Spark drops the others before it sorts."""
    if cap is None:
        return frame
    place = F.row_number().over(Window.partitionBy(*of).orderBy(*order))  # type: ignore[arg-type]
    return frame.withColumn("place", place).where(F.col("place") <= cap).drop("place")


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionByName, frames)


_Cell = tuple[int | None, int]
_Latency = tuple[LatencyCells, LatencyCells, int]
_NO_LATENCY: _Latency = (LatencyCells(), LatencyCells(), 0)


@dataclass(slots=True)
class UnitLedger:
    scope: UnitScope
    counts: defaultdict[_Cell, Counter[Verdict]] = field(
        default_factory=lambda: defaultdict(Counter)
    )
    matched: dict[_Cell, int] = field(default_factory=dict)
    source_bytes: dict[_Cell, int] = field(default_factory=dict)
    latency: dict[_Cell, _Latency] = field(default_factory=dict)
    evidence: list[Evidence] = field(default_factory=list)
    copied_again: int = 0
    replays: list[ReplayEvent] = field(default_factory=list)
    affinity: AffinityOutcome = field(default_factory=AffinityOutcome)
    key_cells: list[KeyCell] = field(default_factory=list)
    broken_keys: list[int] = field(default_factory=list)
    oldest_open: int | None = None

    def __post_init__(self) -> None:
        for flow, of_flow in enumerate(self.scope.flows):
            for each in of_flow.partitions:
                cell = self.counts[flow, each.partition]
                if each.expired:
                    cell[Verdict.EXPIRED] = each.expired

    def add_tally(self, row: Row) -> None:
        """Add matches and latencies of a partition or of a part of its records."""
        cell = row.flow, row.partition
        self.matched[cell] = self.matched.get(cell, 0) + row.matched - row.late
        self.counts[cell][Verdict.LATE] += row.late
        end_to_end, transfer, without = self.latency.get(cell, _NO_LATENCY)
        more_end_to_end, more_transfer, more_without = unpack_row(row)
        self.latency[cell] = (
            merge_latencies((end_to_end, more_end_to_end)),
            merge_latencies((transfer, more_transfer)),
            without + more_without,
        )

    def add_decided(self, mark: GroupMark) -> None:
        """Add verdicts that needed no second pass."""
        if mark.verdict is not None:
            self.counts[mark.flow, mark.partition][mark.verdict] += mark.groups

    def add_open(self, timestamp: int) -> None:
        """Add the timestamp of a pending or overdue record."""
        oldest = self.oldest_open
        self.oldest_open = timestamp if oldest is None else min(oldest, timestamp)

    def add_deleted(self, row: Row) -> None:
        """Add tombstones that match without a copy."""
        self.counts[row.flow, row.partition][Verdict.MATCHED] += row["count"]

    def add_bytes(self, row: Row) -> None:
        """Add bytes of source records."""
        cell = row.flow, row.partition
        self.source_bytes[cell] = self.source_bytes.get(cell, 0) + row.source_bytes

    def add_keyless(self, row: Row) -> None:
        """Add source records without a key, of which compaction keeps none."""
        self.counts[row.flow, row.partition][Verdict.UNAUDITABLE] += row.keyless

    def add_count(self, row: Row) -> None:
        """Add the count of a verdict in a partition."""
        verdict = VERDICTS[row.verdict]
        self.counts[row.cell_flow, row.cell_partition][verdict] += row.n
        if verdict in OPEN_VERDICTS and row.oldest is not None:
            self.add_open(row.oldest)

    def add_evidence(self, row: Row) -> None:
        verdict = VERDICTS[row.verdict]
        self.evidence.append(
            Evidence(
                verdict=verdict,
                side=Side.TARGET if verdict in SURPLUS else Side.SOURCE,
                flow=row.cell_flow or 0,
                partition=row.partition,
                offset=row.offset,
                timestamp=row.ts,
                fingerprint=row.fp,
                key_hash=row.kh,
                other_partition=row.other_partition,
                other_offset=row.other_offset,
                block=row.block,
            )
        )

    def add_replay(self, row: Row) -> None:
        """Add a block that was replicated again."""
        self.replays.append(ReplayEvent(row.partition, row.block, row.block_end, row.block_size))

    def add_affinity(self, row: Row) -> None:
        """Add counts of keys: of all keys, or of those with equal counts."""
        self.affinity = AffinityOutcome(
            keys=self.affinity.keys + row.keys_,
            keys_split=self.affinity.keys_split + row.keys_split,
            keys_disordered=self.affinity.keys_disordered + row.keys_disordered,
            records_moved=self.affinity.records_moved + row.strays,
        )
        self.key_cells.append(KeyCell(row.keys_, row.records, row.copies, row.strays, row.overtook))

    def outcome(self) -> UnitOutcome:
        for cell, matched in self.matched.items():
            if matched:
                self.counts[cell][Verdict.MATCHED] += matched
        rank = {verdict: place for place, verdict in enumerate(VERDICTS)}
        return UnitOutcome(
            scope=self.scope,
            partitions=tuple(self._partitions()),
            affinity=replace(
                self.affinity,
                broken_keys=tuple(sorted(self.broken_keys)),
                cells=pool_key_cells(self.key_cells),
            ),
            copied_again=self.copied_again,
            replays=tuple(sorted(self.replays, key=lambda each: (each.partition, each.start))),
            evidence=tuple(
                sorted(
                    self.evidence,
                    key=lambda each: (rank[each.verdict], each.flow, each.partition, each.offset),
                )
            ),
            oldest_open=self.oldest_open,
            order_judged=judges_order(self.scope),
        )

    def _partitions(self) -> Iterable[PartitionOutcome]:
        for cell in sorted(self.counts, key=lambda each: (each[0] is None, each[0] or 0, each[1])):
            counts = {verdict: number for verdict, number in self.counts[cell].items() if number}
            if cell[0] is None and not counts:
                continue  # all its records had moved or were altered
            end_to_end, transfer, without = self.latency.get(cell, _NO_LATENCY)
            yield PartitionOutcome(
                flow=cell[0],
                partition=cell[1],
                counts=counts,
                source_bytes=self.source_bytes.get(cell, 0),
                end_to_end=end_to_end,
                transfer=transfer,
                without_bracket=without,
            )


_PER_CORE: Final = 32
"""Of the exchange of all records: small hash tables stay in the CPU caches."""

_ROWS: Final = 25_000
"""Fewer rows do not need a partition of their own: a task costs up to 40 ms of CPU."""
_FEW_PER_CORE: Final = 8
_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"


def count_exchange_partitions(
    spark: SparkSession, units: Units, split: Parts, share: float = 1.0, poll_rows: int = 0
) -> int:
    """Partitions of the exchange of all records: at most one per partition or part to judge.

    *share*: of the records that were landed. Polls are exchanged with them.
    """
    cores = spark.sparkContext.defaultParallelism
    places = sum(len(unit.partitions) for unit in units.scopes)
    places += sum(number - 1 for number in split.values())
    rows = math.ceil(sum(unit.planned for unit in units.scopes) * share) + poll_rows
    return max(1, min(places, _PER_CORE * cores, max(cores, rows // _ROWS)))


@contextmanager
def limit_shuffle_partitions(spark: SparkSession) -> Iterator[None]:
    """Size all other exchanges by the cores of the cluster, unless the session sets a number.

    Cached frames keep their partitions however few records they have: with Spark's default of 200 a
    one-core cluster ran 5,917 tasks of 8 ms instead of 582.
    """
    if spark.sparkContext.getConf().contains(_SHUFFLE_PARTITIONS):
        yield
        return
    former = str(spark.conf.get(_SHUFFLE_PARTITIONS))
    spark.conf.set(_SHUFFLE_PARTITIONS, _FEW_PER_CORE * spark.sparkContext.defaultParallelism)
    try:
        yield
    finally:
        spark.conf.set(_SHUFFLE_PARTITIONS, former)
