"""Second pass: reads only those records of plain units that counts do not decide.

    marks ──select_slices──> slices, and offset ranges where order may be broken
       ──find_slices──> the slices of these ranges
       ──select_in_slices──> all records of these slices: a small cached frame

It costs one or two scans without an exchange, and beyond that grows with the number of anomalies.
"""

from __future__ import annotations

import operator
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import groupby
from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from mm2slo_audit.engine.group_marks import (
    DECIDED,
    DUPLICATED,
    LATE,
    MISSING,
    OVERTAKEN,
    REPEATED,
    UNEXPLAINED,
    GroupMark,
    TimeSlices,
    read_marks,
)
from mm2slo_audit.engine.match_tally import PartOffsets, find_overlaps
from mm2slo_audit.engine.unit_columns import (
    GROUP,
    SOURCE,
    TARGET,
    Units,
    add_group_columns,
    judges_order,
    literal_table,
)
from mm2slo_core.audit.audit_scope import UnitScope
from mm2slo_core.audit.unit_outcome import Verdict

_Lane = tuple[int, int, int]
"""Topic, partition and flow."""


@dataclass(frozen=True)
class SecondPass:
    """What the second pass over plain *units* reads."""

    units: Units
    marks: Sequence[GroupMark]
    lanes: Mapping[_Lane, Sequence[PartOffsets]]
    """Partitions that were tallied in parts."""
    selection: SliceSelection

    @classmethod
    def plan(cls, units: Units, tallied: Sequence[Row], cap: int | None) -> SecondPass:
        """*tallied*: rows of `tally_matches`; *cap*: records as evidence of each verdict."""
        found = [mark for row in tallied for mark in read_marks(row)]
        lanes: defaultdict[_Lane, list[PartOffsets]] = defaultdict(list)
        for row in tallied:
            if "s_low" in row and row.s_low is not None:
                lanes[row.topic, row.partition, row.flow].append(
                    PartOffsets(row.part, row.s_low, row.s_high, row.t_low, row.t_high)
                )
        return cls(units, found, lanes, select_slices(found, TimeSlices(units), cap))

    @property
    def flags(self) -> int:
        """Flags of all marks; OVERTAKEN also if parts overlap."""
        disorder = OVERTAKEN if self.selection.ranges else 0
        return reduce(operator.or_, (mark.flags for mark in self.marks), disorder)

    def records(
        self, spark: SparkSession, records: DataFrame, keep: Callable[[DataFrame], DataFrame]
    ) -> DataFrame | None:
        """The selected *records*, each with its complete group; None: nothing is selected."""
        rows = self.units.of(records)
        self._widen(spark, rows)
        frames = []
        if self.selection.masks:
            slices = TimeSlices(self.units)
            frames.append(keep(select_in_slices(spark, rows, self.selection.masks, slices)))
        if self.selection.whole:
            frames.append(select_in_partitions(spark, rows, self.selection.whole))
        return _union(frames)

    def _widen(self, spark: SparkSession, rows: DataFrame) -> None:
        """Add the slices where order may be broken."""
        slices, ranges = TimeSlices(self.units), self.selection.ranges
        ordered = {each.index for each in self.units.where(judges_order).scopes}
        for (topic, partition, _), parts in self.lanes.items():
            if topic not in ordered or (topic, partition) in self.selection.whole:
                continue
            for side, of_side in zip((SOURCE, TARGET), find_overlaps(parts), strict=True):
                if of_side:
                    ranges[topic, partition, side] += of_side
        if self.selection.repeated:
            repeating = select_in_slices(spark, rows, self.selection.repeated, slices)
            for place, of_place in find_repeated_ranges(repeating, slices).items():
                ranges[place] += of_place
        for key, fine in find_slices(spark, rows, ranges, slices).items():
            self.selection.masks[key] |= fine


def _union(frames: Sequence[DataFrame]) -> DataFrame | None:
    if not frames:
        return None
    first, *others = frames
    for each in others:
        first = first.unionByName(each)
    return first


PartitionPlace = tuple[int, int]
"""Topic and partition."""

SliceMasks = defaultdict[tuple[int, int, int], int]
"""Masks of fine slices by topic, partition and coarse slice."""

OffsetRange = tuple[int, int]
"""Offsets, both ends included."""

_EVIDENCE_VERDICTS: Final = (Verdict.LOST, Verdict.OVERDUE, Verdict.EXTRA)
"""Decided verdicts that need evidence."""
OPEN_VERDICTS: Final = (Verdict.PENDING, Verdict.OVERDUE)

MAX_REPEATED: Final = 20_000
"""Groups of a partition that are looked up one by one; with more the whole partition is read."""


@dataclass(slots=True)
class SliceSelection:
    """What the second pass reads."""

    masks: SliceMasks = field(default_factory=lambda: defaultdict(int))
    whole: set[PartitionPlace] = field(default_factory=set)
    """Partitions to read completely."""
    ranges: defaultdict[tuple[int, int, int], list[OffsetRange]] = field(
        default_factory=lambda: defaultdict(list)
    )
    """By topic, partition and side: offsets whose slices are read as well."""
    repeated: SliceMasks = field(default_factory=lambda: defaultdict(int))
    """The part of `masks` with repeated records whose order matters."""
    oldest: dict[int, int] = field(default_factory=dict)
    """By topic: timestamp of the oldest decided record that is certainly open."""

    def add(self, mark: GroupMark, fine: int) -> None:
        """Add fine slices of a mark."""
        if fine:
            self.masks[mark.topic, mark.partition, mark.coarse] |= fine


def select_slices(
    found: Iterable[GroupMark], slices: TimeSlices, cap: int | None
) -> SliceSelection:
    """The fewest slices that decide all verdicts, with *cap* records as evidence of each."""
    selection = SliceSelection()
    scopes = {each.index: each for each in slices.units.scopes}
    in_order = sorted(found, key=lambda each: each.topic)
    for topic, of_topic in groupby(in_order, key=lambda each: each.topic):
        _select_in_unit(selection, scopes[topic], list(of_topic), slices, cap)
    selection.masks = _without_partitions(selection.masks, selection.whole)
    selection.repeated = _without_partitions(selection.repeated, selection.whole)
    for topic, partition, side in [
        each for each in selection.ranges if each[:2] in selection.whole
    ]:
        del selection.ranges[topic, partition, side]
    return selection


def merge_ranges(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """The same offsets as disjoint ranges."""
    joined: list[OffsetRange] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(high, joined[-1][1]))
        else:
            joined.append((low, high))
    return joined


def _select_in_unit(
    selection: SliceSelection,
    unit: UnitScope,
    found: Sequence[GroupMark],
    slices: TimeSlices,
    cap: int | None,
) -> None:
    mixed = _find_mixed_slices(found)
    several = len(unit.partitions) > 1
    for mark in found:
        if not mark.has(DECIDED):
            selection.add(mark, mark.fine * mark.has(MISSING | UNEXPLAINED | DUPLICATED | REPEATED))
        elif several and mark.has(UNEXPLAINED):
            # Its record may be in another partition, replicated or not.
            selection.add(mark, mark.fine)
        elif mark.has(MISSING | UNEXPLAINED):
            selection.add(mark, mark.fine & mixed.get(mark.coarse, 0))
    if judges_order(unit):
        _add_disorder(selection, unit, found)
    _add_evidence(selection, found, mixed, cap)
    _add_oldest(selection, unit, found, mixed, slices)


def _find_mixed_slices(found: Iterable[GroupMark]) -> dict[int, int]:
    """Slices with records left over on both sides: only there a record may have moved."""
    missing: defaultdict[int, int] = defaultdict(int)
    unexplained: defaultdict[int, int] = defaultdict(int)
    for mark in found:
        if mark.has(MISSING):
            missing[mark.coarse] |= mark.fine
        if mark.has(UNEXPLAINED):
            unexplained[mark.coarse] |= mark.fine
    return {coarse: fine & unexplained.get(coarse, 0) for coarse, fine in missing.items()}


def _add_disorder(selection: SliceSelection, unit: UnitScope, found: Iterable[GroupMark]) -> None:
    repeated: Counter[int] = Counter()
    for mark in found:
        if mark.has(OVERTAKEN) and mark.low is not None and mark.high is not None:
            selection.ranges[unit.index, mark.partition, TARGET].append((mark.low, mark.high))
        if mark.has(REPEATED):
            repeated[mark.partition] += mark.groups
            selection.repeated[unit.index, mark.partition, mark.coarse] |= mark.fine
    for partition, groups in repeated.items():
        # Offsets of different flows cannot be compared.
        if groups > MAX_REPEATED or len(unit.flows) > 1:
            selection.whole.add((unit.index, partition))


def _add_evidence(
    selection: SliceSelection, found: Iterable[GroupMark], mixed: dict[int, int], cap: int | None
) -> None:
    for verdict in _EVIDENCE_VERDICTS:
        decided = [each for each in found if each.verdict is verdict]
        decided.sort(key=lambda each: (each.flow or 0, each.partition, each.low or 0))
        certain = 0
        for mark in decided:
            if cap is not None and certain >= cap:
                break
            selection.add(mark, mark.fine)
            # In a mixed slice the record may have moved.
            certain += not mark.fine & mixed.get(mark.coarse, 0)
    late = [each for each in found if each.has(LATE)]
    # Low offsets of overtaken records are those of other records.
    late.sort(key=lambda each: (not each.has(OVERTAKEN), each.flow or 0, each.partition, each.low))
    sure = sum(each.has(OVERTAKEN) for each in late)
    for mark in late[: None if cap is None else sure + cap]:
        selection.add(mark, mark.fine)


def _add_oldest(
    selection: SliceSelection,
    unit: UnitScope,
    found: Iterable[GroupMark],
    mixed: dict[int, int],
    slices: TimeSlices,
) -> None:
    opened = [
        (each.oldest, each)
        for each in found
        if each.verdict in OPEN_VERDICTS and each.oldest is not None
    ]
    for oldest, mark in sorted(opened, key=lambda each: each[0]):
        coarse, fine = slices.at(unit, oldest)
        if not fine & mixed.get(coarse, 0):
            selection.oldest[unit.index] = oldest
            break
        selection.add(mark, mark.fine)


def _without_partitions(masks: SliceMasks, places: set[PartitionPlace]) -> SliceMasks:
    kept = SliceMasks(int)
    kept.update({key: fine for key, fine in masks.items() if key[:2] not in places})
    return kept


_BLOCK_OFFSETS: Final = 1 << 12
"""Offsets per block of the range lookup."""


def select_in_slices(
    spark: SparkSession, records: DataFrame, masks: SliceMasks, slices: TimeSlices
) -> DataFrame:
    """Records in the fine slices of *masks*."""
    rows = [(*key, fine) for key, fine in sorted(masks.items())]
    wanted = literal_table(spark, rows, "topic int, partition int, coarse bigint, wanted bigint")
    found = slices.sliced(records).join(
        F.broadcast(wanted), on=["topic", "partition", "coarse"], how="inner"
    )
    return found.where(F.col("wanted").bitwiseAND(F.col("fine")) != 0).select(*records.columns)


def select_in_partitions(
    spark: SparkSession, records: DataFrame, places: Collection[PartitionPlace]
) -> DataFrame:
    """All records of the partitions *places*."""
    wanted = literal_table(spark, sorted(places), "topic int, partition int")
    return records.join(F.broadcast(wanted), on=["topic", "partition"], how="left_semi")


def find_slices(
    spark: SparkSession,
    records: DataFrame,
    ranges: Mapping[tuple[int, int, int], Sequence[OffsetRange]],
    slices: TimeSlices,
) -> SliceMasks:
    """Slices of the records whose offsets are in *ranges* (by topic, partition and side)."""
    rows = [
        (
            *place,
            block,
            max(low, block * _BLOCK_OFFSETS),
            min(high, (block + 1) * _BLOCK_OFFSETS - 1),
        )
        for place, of_place in sorted(ranges.items())
        for low, high in merge_ranges(of_place)
        for block in range(low // _BLOCK_OFFSETS, high // _BLOCK_OFFSETS + 1)
    ]
    masks = SliceMasks(int)
    if not rows:
        return masks
    columns = "topic int, partition int, side tinyint, block bigint, low bigint, high bigint"
    wanted = literal_table(spark, rows, columns)
    block = F.shiftright("offset", _BLOCK_OFFSETS.bit_length() - 1)
    found = (
        records.withColumn("block", block)
        .join(F.broadcast(wanted), on=["topic", "partition", "side", "block"], how="inner")
        .where(F.col("offset").between(F.col("low"), F.col("high")))
    )
    fine = slices.sliced(found).groupBy("topic", "partition", "coarse").agg(F.bit_or("fine"))
    for topic, partition, coarse, mask in fine.collect():
        masks[topic, partition, coarse] = mask
    return masks


def find_repeated_ranges(
    records: DataFrame, slices: TimeSlices
) -> dict[tuple[int, int, int], list[OffsetRange]]:
    """Offsets of groups with several source records, in the form of `SliceSelection.ranges`."""
    source = F.col("side") == SOURCE
    ends = [
        function(F.when(side, F.col("offset"))).alias(name)
        for side, low, high in ((source, "s_low", "s_high"), (~source, "t_low", "t_high"))
        for function, name in ((F.min, low), (F.max, high))
    ]
    found = (
        add_group_columns(records, slices.units)
        .groupBy(*GROUP, "partition")
        .agg(F.count(F.when(source, 1)).alias("ns"), *ends)
        .where("ns > 1 and t_low is not null")
    )
    ranges: dict[tuple[int, int, int], list[OffsetRange]] = {}
    for row in found.select("topic", "partition", "s_low", "s_high", "t_low", "t_high").collect():
        for side, low, high in (
            (SOURCE, row.s_low, row.s_high),
            (TARGET, row.t_low, row.t_high),
        ):
            ranges.setdefault((row.topic, row.partition, side), []).append((low, high))
    return ranges


def select_repeated(records: DataFrame, units: Units) -> DataFrame:
    """The records of groups with several source records; *records* must hold complete groups."""
    several = F.count(F.when(F.col("side") == SOURCE, 1)).over(Window.partitionBy(*GROUP)) > 1
    rows = add_group_columns(records, units).withColumn("several", several).where("several")
    return rows.select(*records.columns)
