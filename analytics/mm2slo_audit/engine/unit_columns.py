"""Columns of the engine: landed records and polls, values of scopes by unit, group columns."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    AuditRecord,
    Comparison,
    TimestampType,
    UnitScope,
)
from mm2slo_core.records.timeline_record import Side


@dataclass(frozen=True)
class Units:
    """Units of a run that one plan judges together."""

    scopes: tuple[UnitScope, ...]

    def __bool__(self) -> bool:
        return bool(self.scopes)

    def where(self, holds: Callable[[UnitScope], bool]) -> Self:
        """The units for which *holds* is true."""
        return replace(self, scopes=tuple(each for each in self.scopes if holds(each)))

    def of(self, frame: DataFrame) -> DataFrame:
        """The rows of these units."""
        return frame.where(F.col("topic").isin([each.index for each in self.scopes]))

    def per_unit(self, of_unit: Callable[[UnitScope], int | None], kind: str = "bigint") -> Column:
        """A value of the row's unit; a plain literal if all units have the same."""
        values = {each.index: of_unit(each) for each in self.scopes}
        if len(set(values.values())) == 1:
            return F.lit(next(iter(values.values()))).cast(kind)
        # The optimizer folds the literal: a lookup is one array access.
        listed = [values.get(index) for index in range(max(values) + 1)]
        return F.get(_literal(listed, f"array<{kind}>"), F.col("topic"))

    def flag_per_unit(self, of_unit: Callable[[UnitScope], bool]) -> Column:
        """A boolean value of the row's unit."""
        return self.per_unit(of_unit, "boolean")

    def per_partition(
        self,
        of_unit: Callable[[UnitScope], Sequence[Mapping[int, int | None]]],
        lane: Column,
        partition: str = "partition",
    ) -> Column:
        """A value by *lane* (an index of what *of_unit* lists) and partition; null if unknown.

        A literal: for the few rows that need it, or few units.
        """
        by_topic = {unit.index: of_unit(unit) for unit in self.scopes}
        listed = [
            [
                [of_lane.get(each) for each in range(max(of_lane, default=-1) + 1)]
                for of_lane in by_topic.get(topic, ())
            ]
            for topic in range(max(by_topic) + 1)
        ]
        figures = _literal(listed, "array<array<array<bigint>>>")
        return F.get(F.get(F.get(figures, F.col("topic")), lane), F.col(partition))

    @property
    def judged(self) -> Column:
        """Whether the row's `ts` is in the window of its unit."""
        ts = F.col("ts")
        start, end = (
            self.per_unit(each) for each in (lambda u: u.window.start, lambda u: u.window.end)
        )
        return (ts >= start) & (ts < end)

    @property
    def group_partition(self) -> Column:
        """The partition if it belongs to the identity of a record, else -1."""
        return F.when(self.flag_per_unit(compares_records), F.col("partition")).otherwise(F.lit(-1))

    @property
    def group_ts(self) -> Column:
        """The timestamp if it belongs to the identity of a record, else 0."""
        return F.when(
            self.flag_per_unit(lambda each: each.identity.timestamp), F.col("ts")
        ).otherwise(0)

    @property
    def stamped_source(self) -> Column:
        """Whether the row's source topic has LogAppendTime."""
        return self._has_source_time(TimestampType.LOG_APPEND)

    @property
    def created_source(self) -> Column:
        """Whether all records of the row's source topic have CreateTime."""
        return self._has_source_time(TimestampType.CREATE)

    def _has_source_time(self, kind: TimestampType) -> Column:
        held = {
            each.index: [flow.source_time is kind for flow in each.flows] for each in self.scopes
        }
        if len(found := {each for of_unit in held.values() for each in of_unit}) == 1:
            return F.lit(found.pop())
        listed = [held.get(index, []) for index in range(max(held) + 1)]
        flows = F.get(_literal(listed, "array<array<boolean>>"), F.col("topic"))
        return F.coalesce(F.get(flows, F.col("flow")), F.lit(False))


def compares_records(scope: UnitScope) -> bool:
    """Whether copies must be in the partition of their record."""
    return scope.comparison is Comparison.RECORDS


def judges_order(scope: UnitScope) -> bool:
    """Whether order is judged."""
    return scope.comparison is not Comparison.LATEST and all(
        each.has_positions for each in scope.flows
    )


def literal_table(
    spark: SparkSession, rows: Iterable[Sequence[int | None]], schema: str
) -> DataFrame:
    """A small table as a literal that executors parse, without a Python worker."""
    text = json.dumps([list(each) for each in rows])
    names = [each.split()[0] for each in schema.split(", ")]
    parsed = F.from_json(F.lit(text), "array<array<bigint>>")
    cells = spark.range(1).select(F.explode(parsed).alias("row"))
    return cells.select(
        *(
            F.col("row")[place].cast(field.split()[1]).alias(name)
            for place, (name, field) in enumerate(zip(names, schema.split(", "), strict=True))
        )
    )


def source_table(spark: SparkSession, units: Units) -> DataFrame:
    """topic, flow, partition, known_from, next_offset of all source partitions."""
    return literal_table(
        spark,
        (
            (unit.index, flow, each.partition, each.known_from, each.next_offset)
            for unit in units.scopes
            for flow, of_flow in enumerate(unit.flows)
            for each in of_flow.partitions
        ),
        "topic int, flow int, partition int, known_from bigint, next_offset bigint",
    )


def target_table(spark: SparkSession, units: Units) -> DataFrame:
    """topic, partition, auditable_from of all target partitions."""
    return literal_table(
        spark,
        (
            (unit.index, each.partition, each.auditable_from)
            for unit in units.scopes
            for each in unit.partitions
        ),
        "topic int, partition int, auditable_from bigint",
    )


def _literal(values: object, kind: str) -> Column:
    return F.from_json(F.lit(json.dumps(values)), kind)


GROUP: Final = ("topic", "group_partition", "group_ts", "fp")
"""Columns that identify a group of equal records."""


def add_group_columns(records: DataFrame, units: Units) -> DataFrame:
    """The records of *units*, with the columns of `GROUP`."""
    return units.of(records).withColumns(
        {"group_partition": units.group_partition, "group_ts": units.group_ts}
    )


SOURCE: Final = 0
TARGET: Final = 1

RECORD_SCHEMA: Final = (
    "topic int, flow int, side tinyint, partition int, offset bigint, ts bigint, fp bigint, "
    "kh bigint, size int, in_records boolean, in_keys boolean, tombstone boolean, "
    "masked array<bigint>"
)

POLL_SCHEMA: Final = (
    "topic int, flow int, side tinyint, partition int, end bigint, earliest bigint, latest bigint"
)


def side_code(side: Side) -> int:
    """The code of a side in the columns of the engine."""
    return SOURCE if side is Side.SOURCE else TARGET


def record_row(record: AuditRecord) -> tuple[object, ...]:
    """A record in the order of `RECORD_SCHEMA`."""
    return (
        record.topic,
        record.flow,
        side_code(record.side),
        record.partition,
        record.offset,
        record.timestamp,
        record.fingerprint,
        record.key_hash,
        record.size,
        record.in_records,
        record.in_keys,
        record.tombstone,
        list(record.masked),
    )


def poll_row(poll: ArrivalPoll) -> tuple[int | None, ...]:
    """A poll in the order of `POLL_SCHEMA`."""
    return (
        poll.topic,
        poll.flow,
        side_code(poll.side),
        poll.partition,
        poll.end,
        poll.earliest,
        poll.latest,
    )
