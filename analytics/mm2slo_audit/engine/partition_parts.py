"""A partition of very many records in parts, so that no one task has to take all of it.

Parts are of equal time, not of equal offsets: equal records have equal timestamps, so that each
part has its records of both sides. Their copies may have overtaken each other across a border only
where the offsets of two parts overlap; `overlaps` tells where.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column

    from mm2slo_audit.engine.unit_columns import Units

PART_ROWS: Final = 1_000_000
"""Rows of both sides that one task sorts well."""
_MOST: Final = 1 << 12
_SHARES_PER_TASK: Final = 2

Parts = dict[tuple[int, int], int]
"""Number of parts by topic and partition; 1 is left out."""


class Span(NamedTuple):
    """Offsets of the matched records of one part."""

    part: int
    s_low: int
    s_high: int
    t_low: int
    t_high: int


def parts(units: Units, parallelism: int) -> Parts:
    """Those partitions that would hold up the others: of their offsets, which the scopes know."""
    rows: Counter[tuple[int, int]] = Counter()
    for unit in units.scopes:
        for copied in unit.partitions:
            rows[unit.index, copied.partition] += copied.end - copied.read_from
        for each in (one for flow in unit.flows for one in flow.partitions):
            rows[unit.index, each.partition] += each.end - each.read_from
    share = rows.total() / (parallelism * _SHARES_PER_TASK)
    return {
        place: min(_MOST, -(-number // PART_ROWS))
        for place, number in rows.items()
        if number > PART_ROWS and number > share
    }


def part(units: Units, found: Parts) -> Column:
    """The part of a record, by its `ts`."""
    if not found:
        return F.lit(0).cast("bigint")
    start = units.figure(lambda each: each.window.start)
    end = units.figure(lambda each: each.window.end)
    inside = F.greatest(start, F.least(F.col("ts"), end - 1)) - start
    return F.coalesce(F.call_function("div", inside * _number(found), end - start), F.lit(0))


def all_parts(found: Parts) -> Column:
    """All parts of a partition, as an array: a poll is in each of them."""
    last = F.coalesce(_number(found), F.lit(1)) - 1
    return F.sequence(F.lit(0).cast("bigint"), last)


def overlaps(spans: Iterable[Span]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Ranges of source and of target offsets in which parts of one lane meet, ends included.

    Of two records in different parts, one of which overtook the other, both are in one of them.
    """
    source: list[tuple[int, int]] = []
    target: list[tuple[int, int]] = []
    s_high = t_high = -1
    for each in sorted(spans):
        if s_high > each.s_low:
            source.append((each.s_low, s_high))
        if t_high > each.t_low:
            target.append((each.t_low, t_high))
        s_high, t_high = max(s_high, each.s_high), max(t_high, each.t_high)
    return source, target


def _number(found: Mapping[tuple[int, int], int]) -> Column:
    """Null where there is one."""
    listed: list[list[int | None]] = [[] for _ in range(max(topic for topic, _ in found) + 1)]
    for (topic, partition), number in found.items():
        of_topic = listed[topic]
        of_topic.extend([None] * (partition + 1 - len(of_topic)))
        of_topic[partition] = number
    numbers = F.from_json(F.lit(json.dumps(listed)), "array<array<bigint>>")
    return F.get(F.get(numbers, F.col("topic")), F.col("partition"))
