"""The records of plain units that counts do not decide on, and no others.

    marks ──choosing──> slices, and ranges of offsets where order may be broken
       ──looking──> the slices of what lies in these ranges
       ──looking──> all records of these slices: a small frame that is kept

The cost is one or two scans without an exchange, and beyond that follows the number of anomalies.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from mm2slo_audit.engine.group_marks import OVERTAKEN, marks
from mm2slo_audit.engine.partition_parts import Span, overlaps
from mm2slo_audit.engine.record_schema import SOURCE, TARGET
from mm2slo_audit.engine.slice_records import (
    find_slices,
    select_in_partitions,
    select_in_slices,
    spans,
)
from mm2slo_audit.engine.slice_selection import choose
from mm2slo_audit.engine.time_slices import TimeSlices
from mm2slo_audit.engine.unit_columns import judges_order

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, Row, SparkSession

    from mm2slo_audit.engine.group_marks import Mark
    from mm2slo_audit.engine.slice_selection import Choice
    from mm2slo_audit.engine.unit_columns import Units

_Lane = tuple[int, int, int]
"""Topic, partition and flow."""


@dataclass(frozen=True)
class SecondPass:
    """What has to be looked at of *units*, all of them plain."""

    units: Units
    marks: Sequence[Mark]
    lanes: Mapping[_Lane, Sequence[Span]]
    """Of partitions that were tallied in parts."""
    choice: Choice

    @classmethod
    def after(cls, units: Units, tallied: Sequence[Row], cap: int | None) -> SecondPass:
        """*tallied*: rows of `matching.tally`; *cap*: records as evidence of each verdict."""
        found = [mark for row in tallied for mark in marks(row)]
        lanes: defaultdict[_Lane, list[Span]] = defaultdict(list)
        for row in tallied:
            if "s_low" in row and row.s_low is not None:
                lanes[row.topic, row.partition, row.flow].append(
                    Span(row.part, row.s_low, row.s_high, row.t_low, row.t_high)
                )
        return cls(units, found, lanes, choose(found, TimeSlices(units), cap))

    @property
    def flags(self) -> int:
        """Of all marks together; overtaken also if parts overlap."""
        disorder = OVERTAKEN if self.choice.ranges else 0
        return reduce(operator.or_, (mark.flags for mark in self.marks), disorder)

    def records(
        self, spark: SparkSession, records: DataFrame, keep: Callable[[DataFrame], DataFrame]
    ) -> DataFrame | None:
        """Those of *records* that matter, each with all of its group; None: none do."""
        rows = self.units.of(records)
        self._widen(spark, rows)
        frames = []
        if self.choice.masks:
            slices = TimeSlices(self.units)
            frames.append(keep(select_in_slices(spark, rows, self.choice.masks, slices)))
        if self.choice.whole:
            frames.append(select_in_partitions(spark, rows, self.choice.whole))
        return _union(frames)

    def _widen(self, spark: SparkSession, rows: DataFrame) -> None:
        """Add the slices where order may be broken."""
        slices, ranges = TimeSlices(self.units), self.choice.ranges
        ordered = {each.index for each in self.units.where(judges_order).scopes}
        for (topic, partition, _), parts in self.lanes.items():
            if topic not in ordered or (topic, partition) in self.choice.whole:
                continue
            for side, of_side in zip((SOURCE, TARGET), overlaps(parts), strict=True):
                if of_side:
                    ranges[topic, partition, side] += of_side
        if self.choice.repeated:
            repeating = select_in_slices(spark, rows, self.choice.repeated, slices)
            for place, of_place in spans(repeating, slices).items():
                ranges[place] += of_place
        for key, fine in find_slices(spark, rows, ranges, slices).items():
            self.choice.masks[key] |= fine


def _union(frames: Sequence[DataFrame]) -> DataFrame | None:
    if not frames:
        return None
    first, *others = frames
    for each in others:
        first = first.unionByName(each)
    return first
