"""Parts of a very large partition, so that no single task has to process all of it.

Parts cover equal times, not equal offsets: equal records have equal timestamps, so a part has its
records of both sides. Records can overtake each other across parts only where the offsets of the
parts overlap; see `find_overlaps`.
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
"""Rows of both sides that one task sorts efficiently."""
_MOST: Final = 1 << 12
_SHARES_PER_TASK: Final = 2

Parts = dict[tuple[int, int], int]
"""Number of parts by topic and partition; partitions with one part are left out."""


class PartOffsets(NamedTuple):
    part: int
    s_low: int
    s_high: int
    t_low: int
    t_high: int


def plan_parts(units: Units, parallelism: int) -> Parts:
    """Split partitions that would delay the others, by the number of their offsets."""
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


def part_column(units: Units, found: Parts) -> Column:
    """The part of a record by its `ts`."""
    if not found:
        return F.lit(0).cast("bigint")
    start = units.per_unit(lambda each: each.window.start)
    end = units.per_unit(lambda each: each.window.end)
    inside = F.greatest(start, F.least(F.col("ts"), end - 1)) - start
    return F.coalesce(F.call_function("div", inside * _number(found), end - start), F.lit(0))


def all_parts(found: Parts) -> Column:
    """All parts of a partition as an array: a poll belongs to each of them."""
    last = F.coalesce(_number(found), F.lit(1)) - 1
    return F.sequence(F.lit(0).cast("bigint"), last)


def find_overlaps(
    spans: Iterable[PartOffsets],
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Source and target ranges (ends included) in which parts of one lane overlap.

    If one of two records in different parts overtook the other, both are in one of these ranges.
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
    """The number of parts; null for one."""
    listed: list[list[int | None]] = [[] for _ in range(max(topic for topic, _ in found) + 1)]
    for (topic, partition), number in found.items():
        of_topic = listed[topic]
        of_topic.extend([None] * (partition + 1 - len(of_topic)))
        of_topic[partition] = number
    numbers = F.from_json(F.lit(json.dumps(listed)), "array<array<bigint>>")
    return F.get(F.get(numbers, F.col("topic")), F.col("partition"))
