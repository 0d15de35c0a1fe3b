"""Second pass: reads only those records of plain units that counts do not decide.

    marks ──slice_selection──> slices, and offset ranges where order may be broken
       ──slice_records──> the slices of these ranges
       ──slice_records──> all records of these slices: a small cached frame

It costs one or two scans without an exchange, and beyond that grows with the number of anomalies.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from mm2slo_audit.engine.group_marks import OVERTAKEN, read_marks
from mm2slo_audit.engine.partition_parts import PartOffsets, find_overlaps
from mm2slo_audit.engine.record_schema import SOURCE, TARGET
from mm2slo_audit.engine.slice_records import (
    find_repeated_ranges,
    find_slices,
    select_in_partitions,
    select_in_slices,
)
from mm2slo_audit.engine.slice_selection import select_slices
from mm2slo_audit.engine.time_slices import TimeSlices
from mm2slo_audit.engine.unit_columns import judges_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from mm2slo_audit.engine.group_marks import Mark
    from mm2slo_audit.engine.slice_selection import SliceSelection
    from mm2slo_audit.engine.unit_columns import Units

_Lane = tuple[int, int, int]
"""Topic, partition and flow."""


@dataclass(frozen=True)
class SecondPass:
    """What the second pass over plain *units* reads."""

    units: Units
    marks: Sequence[Mark]
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
