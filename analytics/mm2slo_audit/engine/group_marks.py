"""Marks: groups of `match_tally` that are more than one record and its copy.

A group has flags; groups of a partition with the same flags in the same coarse slice are one mark.
A single record without counterpart gets its verdict at once (`DECIDED`) unless it moved or was
altered, so the backlog of a stopped flow needs no second pass.

Time slices divide a unit's window, so that a part of its records can be read alone. Plain units
compare timestamps, so all records of a group are in one slice, as are a record and its moved copy.
A coarse slice has 64 fine ones, which a 64-bit mask selects.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from mm2slo_audit.engine.unit_columns import Units
from mm2slo_core.audit.audit_scope import UnitScope
from mm2slo_core.audit.unit_outcome import Verdict

MISSING: Final = 1
"""More records on the source than on the target, in the window."""

DUPLICATED: Final = 2
"""More records on the target, in the window or not: those outside it decide about replays."""

UNEXPLAINED: Final = 4
"""No record on the source, in the window."""

REPEATED: Final = 8
"""Several records on the source: counts do not say which copy belongs to which."""

OVERTAKEN: Final = 16
"""The first copy comes after that of a later record."""

DECIDED: Final = 32
"""One missing or unexplained record whose verdict is known unless it moved or was altered."""

LATE: Final = 64
"""One record whose copy arrived after an earlier audit."""
_VERDICT_SHIFT: Final = 7
_FLAG_BITS: Final = 9
_ALL_FLAGS: Final = (1 << _FLAG_BITS) - 1
_OF_SOURCE: Final = (Verdict.PENDING, Verdict.OVERDUE, Verdict.LOST, Verdict.UNAUDITABLE)
_OF_TARGET: Final = (Verdict.EXTRA, Verdict.UNAUDITABLE)
AGGREGATES: Final = ("groups", "fine", "low", "high", "oldest")


@dataclass(frozen=True, slots=True)
class GroupMark:
    """Groups of one partition with the same coarse slice and flags."""

    topic: int
    partition: int
    flow: int | None
    """None: only on the target."""
    flags: int
    coarse: int
    groups: int
    fine: int
    """Mask of fine slices."""
    low: int | None
    """Lowest offset of its records; for overtaken ones the lowest target offset before them."""
    high: int | None
    """Highest target offset of overtaken records."""
    oldest: int | None
    """Lowest timestamp of decided source records."""

    def has(self, flags: int) -> bool:
        """Whether any of *flags* is set."""
        return bool(self.flags & flags)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on its records if it is decided."""
        if not self.has(DECIDED):
            return None
        return (_OF_SOURCE if self.has(MISSING) else _OF_TARGET)[self.flags >> _VERDICT_SHIFT]


def read_marks(row: Row) -> Iterator[GroupMark]:
    """The marks of a row of `match_tally.tally_matches`."""
    for mark, *rest in row.marks:
        yield GroupMark(
            row.topic, row.partition, row.flow, mark & _ALL_FLAGS, mark >> _FLAG_BITS, *rest
        )


def flag_groups(units: Units, repeated: Column, overtaken: Column, late: Column) -> Column:
    """Flags of a group, from columns topic, flow, partition, ts, ns, nd, s, t."""
    ns, nd = F.col("ns"), F.col("nd")
    judged = units.judged
    gone, foreign = judged & (ns > nd), judged & (ns == 0)
    alone = ns + nd == 1
    found = (
        F.when(gone, MISSING).otherwise(0)
        + F.when((nd > ns) & (ns > 0), DUPLICATED).otherwise(0)
        + F.when(foreign, UNEXPLAINED).otherwise(0)
        + F.when(repeated, REPEATED).otherwise(0)
        + F.when(overtaken, OVERTAKEN).otherwise(0)
        + F.when(late, LATE).otherwise(0)
        + F.when(alone & gone, F.shiftleft(_source_verdict(units), _VERDICT_SHIFT) + DECIDED)
        .when(alone & foreign, F.shiftleft(_target_verdict(units), _VERDICT_SHIFT) + DECIDED)
        .otherwise(0)
    )
    return F.when((ns != nd) | repeated | overtaken | late, found).otherwise(0)


def mark_columns(slices: TimeSlices) -> dict[str, Column]:
    """`mark` (null: none) and the columns of `AGGREGATES`, from `flags` and t_first."""
    marked = F.col("flags") != 0
    overtaken, decided, gone = (
        F.col("flags").bitwiseAND(flag) != 0 for flag in (OVERTAKEN, DECIDED, MISSING)
    )
    number = F.shiftleft(slices.coarse, _FLAG_BITS).bitwiseOR(F.col("flags").cast("bigint"))
    return {
        "mark": F.when(marked, number),
        "fine": F.when(marked, slices.mask),
        "low": F.when(overtaken, F.col("t_first"))
        .when(decided & ~gone, F.col("t"))
        .otherwise(F.col("s")),
        "high": F.when(overtaken, F.col("t")),
        "oldest": F.when(decided & gone, F.col("ts")),
    }


def aggregate_marks() -> list[Column]:
    """`AGGREGATES` over groups with the same mark."""
    return [
        F.count("mark").alias("groups"),
        F.bit_or("fine").alias("fine"),
        F.min("low").alias("low"),
        F.max("high").alias("high"),
        F.min("oldest").alias("oldest"),
    ]


def aggregate_lanes() -> list[Column]:
    """`marks` of a lane, and its number of groups by flag."""
    packed = F.when(F.col("mark").isNotNull(), F.array("mark", *AGGREGATES))
    return [
        F.collect_list(packed).alias("marks"),
        *(
            F.sum(F.when(F.col("mark").bitwiseAND(flag) != 0, F.col("groups")).otherwise(0)).alias(
                name
            )
            for name, flag in (
                ("missing", MISSING),
                ("duplicated", DUPLICATED),
                ("unexplained", UNEXPLAINED),
                ("repeated", REPEATED),
                ("overtaken", OVERTAKEN),
            )
        ),
    ]


def _source_verdict(units: Units) -> Column:
    offset = F.col("s")
    known_from, next_offset = (
        units.per_partition(
            lambda unit, of=name: [  # type: ignore[misc]
                {each.partition: getattr(each, of) for each in flow.partitions}
                for flow in unit.flows
            ],
            F.col("flow"),
        )
        for name in ("known_from", "next_offset")
    )
    age = units.per_unit(lambda each: each.taken_at) - F.col("ts")
    late = age > units.per_unit(lambda each: each.max_pending)
    return (
        F.when(offset < known_from, _OF_SOURCE.index(Verdict.UNAUDITABLE))
        .when(offset < next_offset, _OF_SOURCE.index(Verdict.LOST))
        .when(late, _OF_SOURCE.index(Verdict.OVERDUE))
        .otherwise(_OF_SOURCE.index(Verdict.PENDING))
    )


def _target_verdict(units: Units) -> Column:
    auditable_from = units.per_partition(
        lambda unit: [{each.partition: each.auditable_from for each in unit.partitions}],
        F.lit(0),
    )
    return F.when(F.col("t") < auditable_from, _OF_TARGET.index(Verdict.UNAUDITABLE)).otherwise(
        _OF_TARGET.index(Verdict.EXTRA)
    )


FINE_SLICES: Final = 64
"""Fine slices per coarse slice."""
_FINE_BITS: Final = 6

_MAX_COARSE_SLICES: Final = 1 << 17
"""Coarse slices of all partitions together: the driver may have to hold them."""
_LEAST_OF_ONE: Final = 16
_MOST_OF_ONE: Final = 1 << 14

_FAR: Final = 1 << 40
"""Records farther from the window share one slice."""


@dataclass(frozen=True)
class TimeSlices:
    units: Units

    def width(self, unit: UnitScope) -> int:
        """Width of a fine slice, ms."""
        places = sum(len(each.partitions) for each in self.units.scopes) or 1
        coarse = max(_LEAST_OF_ONE, min(_MAX_COARSE_SLICES // places, _MOST_OF_ONE))
        span = unit.window.end - unit.window.start
        return max(1, -(-span // (coarse * FINE_SLICES)))

    def at(self, unit: UnitScope, timestamp: int) -> tuple[int, int]:
        """Coarse slice and mask of a *timestamp* within the window."""
        coarse, fine = divmod((timestamp - unit.window.start) // self.width(unit), FINE_SLICES)
        return coarse, signed(1 << fine)

    @property
    def coarse(self) -> Column:
        """The coarse slice of a row's `ts`."""
        return F.shiftright(self._number, _FINE_BITS)

    @property
    def mask(self) -> Column:
        """The mask of the row's fine slice."""
        one = F.lit(1).cast("bigint")
        return F.call_function(
            "shiftleft", one, self._number.bitwiseAND(FINE_SLICES - 1).cast("int")
        )

    def sliced(self, frame: DataFrame) -> DataFrame:
        """Rows with columns `coarse` and `fine` (a mask)."""
        return frame.withColumns({"coarse": self.coarse, "fine": self.mask})

    @property
    def _number(self) -> Column:
        start = self.units.per_unit(lambda each: each.window.start)
        width = self.units.per_unit(self.width)
        # Integral division is not a method of Column.
        number = F.call_function("div", F.col("ts") - start, width)
        return F.greatest(F.lit(-_FAR), F.least(F.lit(_FAR), number))


def signed(mask: int) -> int:
    """A 64-bit mask as Spark's signed bigint."""
    return mask - (1 << FINE_SLICES) if mask >> (FINE_SLICES - 1) else mask
