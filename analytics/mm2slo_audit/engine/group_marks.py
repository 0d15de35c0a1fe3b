"""What `matching` says about groups that are not just a record and its copy.

A group of copies has flags; groups of a partition with the same flags in the same coarse slice are
one mark. A single record without counterpart has its verdict at once (`DECIDED`), as far as it is not
moved or altered: so what a stopped flow has not copied yet costs no second look.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column, Row

    from mm2slo_audit.engine.time_slices import TimeSlices
    from mm2slo_audit.engine.unit_columns import Units
    from mm2slo_core.audit.audit_scope import UnitScope

MISSING: Final = 1
"""More on the source than on the target, judged."""
DUPLICATED: Final = 2
"""More on the target, judged or not: what is not decides on replays."""
UNEXPLAINED: Final = 4
"""None on the source, judged."""
REPEATED: Final = 8
"""Several on the source: counts do not tell which copy is whose."""
OVERTAKEN: Final = 16
"""The first copy lies behind that of a later record."""
DECIDED: Final = 32
"""One record, missing or unexplained, whose fate is told, were it not moved or altered."""
_FATE_AT: Final = 6
_FLAG_BITS: Final = 8
_ALL_FLAGS: Final = (1 << _FLAG_BITS) - 1

_OF_SOURCE: Final = (Verdict.PENDING, Verdict.OVERDUE, Verdict.LOST, Verdict.UNAUDITABLE)
_OF_TARGET: Final = (Verdict.EXTRA, Verdict.UNAUDITABLE)

AGGREGATES: Final = ("groups", "fine", "low", "high", "oldest")


@dataclass(frozen=True, slots=True)
class Mark:
    """Groups of one partition, coarse slice and flags."""

    topic: int
    partition: int
    flow: int | None
    """None: of the target alone."""
    flags: int
    coarse: int
    groups: int
    fine: int
    """Mask of their fine slices."""
    low: int | None
    """The first offset of told records; of overtaken ones the first target offset before them."""
    high: int | None
    """The last target offset of overtaken ones."""
    oldest: int | None
    """Timestamp, of told source records."""

    def has(self, flags: int) -> bool:
        """Whether it has any of *flags*."""
        return bool(self.flags & flags)

    @property
    def told(self) -> Verdict | None:
        """The verdict on its records, if it is told."""
        if not self.has(DECIDED):
            return None
        return (_OF_SOURCE if self.has(MISSING) else _OF_TARGET)[self.flags >> _FATE_AT]


def marks(row: Row) -> Iterator[Mark]:
    """Those of a row of `matching.tally`."""
    for mark, *rest in row.marks:
        yield Mark(row.topic, row.partition, row.flow, mark & _ALL_FLAGS, mark >> _FLAG_BITS, *rest)


def flags(units: Units, repeated: Column, overtaken: Column) -> Column:
    """Flags of a group: of columns topic, flow, partition, ts, ns, nd, s, t."""
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
        + F.when(alone & gone, F.shiftleft(_source_fate(units), _FATE_AT) + DECIDED)
        .when(alone & foreign, F.shiftleft(_target_fate(units), _FATE_AT) + DECIDED)
        .otherwise(0)
    )
    return F.when((ns != nd) | repeated | overtaken, found).otherwise(0)


def mark_columns(slices: TimeSlices) -> dict[str, Column]:
    """`mark` (null: none) and what is added up over its groups; of `flags` and t_first."""
    marked = F.col("flags") != 0
    overtaken, told, gone = (
        F.col("flags").bitwiseAND(flag) != 0 for flag in (OVERTAKEN, DECIDED, MISSING)
    )
    number = F.shiftleft(slices.coarse, _FLAG_BITS).bitwiseOR(F.col("flags").cast("bigint"))
    return {
        "mark": F.when(marked, number),
        "fine": F.when(marked, slices.mask),
        "low": F.when(overtaken, F.col("t_first"))
        .when(told & gone, F.col("s"))
        .when(told, F.col("t")),
        "high": F.when(overtaken, F.col("t")),
        "oldest": F.when(told & gone, F.col("ts")),
    }


def added_up() -> list[Column]:
    """`AGGREGATES` of groups with the same mark."""
    return [
        F.count("mark").alias("groups"),
        F.bit_or("fine").alias("fine"),
        F.min("low").alias("low"),
        F.max("high").alias("high"),
        F.min("oldest").alias("oldest"),
    ]


def of_lane() -> list[Column]:
    """`marks` of a lane, and numbers of groups by flag."""
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


def _source_fate(units: Units) -> Column:
    offset = F.col("s")
    known_from, next_offset = (
        _figure(
            units,
            lambda unit, of=name: [  # type: ignore[misc]
                {each.partition: getattr(each, of) for each in flow.partitions}
                for flow in unit.flows
            ],
            F.col("flow"),
        )
        for name in ("known_from", "next_offset")
    )
    age = units.figure(lambda each: each.taken_at) - F.col("ts")
    late = age > units.figure(lambda each: each.max_pending)
    return (
        F.when(offset < known_from, _OF_SOURCE.index(Verdict.UNAUDITABLE))
        .when(offset < next_offset, _OF_SOURCE.index(Verdict.LOST))
        .when(late, _OF_SOURCE.index(Verdict.OVERDUE))
        .otherwise(_OF_SOURCE.index(Verdict.PENDING))
    )


def _target_fate(units: Units) -> Column:
    auditable_from = _figure(
        units,
        lambda unit: [{each.partition: each.auditable_from for each in unit.partitions}],
        F.lit(0),
    )
    return F.when(F.col("t") < auditable_from, _OF_TARGET.index(Verdict.UNAUDITABLE)).otherwise(
        _OF_TARGET.index(Verdict.EXTRA)
    )


def _figure(
    units: Units, of_unit: Callable[[UnitScope], list[dict[int, int | None]]], lane: Column
) -> Column:
    """A figure of a partition, null where there is none: literals, for few rows ask for it."""
    by_topic = {unit.index: of_unit(unit) for unit in units.scopes}
    listed = [
        [
            [of_lane.get(each) for each in range(max(of_lane, default=-1) + 1)]
            for of_lane in by_topic.get(topic, [])
        ]
        for topic in range(max(by_topic) + 1)
    ]
    figures = F.from_json(F.lit(json.dumps(listed)), "array<array<array<bigint>>>")
    return F.get(F.get(F.get(figures, F.col("topic")), lane), F.col("partition"))
