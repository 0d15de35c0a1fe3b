"""Late copies: an earlier audit read the target before they arrived.

The rule of `mm2slo_core.audit.reference.late_copies` as columns.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from mm2slo_audit.engine.leftover_verdicts import verdict_code, verdict_rows
from mm2slo_core.audit.audit_scope import Comparison
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from mm2slo_audit.engine.unit_columns import Units
    from mm2slo_core.audit.audit_scope import UnitScope


def is_late(
    units: Units, source: str = "offset", copy: str = "t_offset", copied_to: str = "t_partition"
) -> Column:
    """Whether a pair is late, from columns topic, flow, partition, ts, and offsets as named."""
    most = max((len(_earlier(each)) for each in units.scopes), default=0)
    found = (
        _was_missing(units, number, F.col(source), F.col(copy), copied_to) for number in range(most)
    )
    return F.coalesce(reduce(or_, found, F.lit(False)), F.lit(False))


def judge_late(pairs: DataFrame, units: Units) -> DataFrame:
    """Evidence of late copies in `VERDICT_COLUMNS`; the tallies have counted them."""
    return verdict_rows(
        units.of(pairs).where(is_late(units)),
        F.lit(verdict_code(Verdict.LATE)),
        copy=(F.col("t_partition"), F.col("t_offset")),
        weight=F.lit(0),
    )


def _earlier(unit: UnitScope) -> tuple[UnitScope, ...]:
    return unit.earlier if unit.comparison is not Comparison.LATEST else ()


def _was_missing(units: Units, number: int, offset: Column, copy: Column, copied_to: str) -> Column:
    def of(unit: UnitScope, name: str) -> int | None:
        earlier = _earlier(unit)
        if number >= len(earlier):
            return None
        window = earlier[number].window
        values = {"start": window.start, "end": window.end}
        return values[name] if name in values else getattr(earlier[number], name)

    def of_source(unit: UnitScope, name: str) -> list[Mapping[int, int | None]]:
        earlier = _earlier(unit)
        by_flow = {} if number >= len(earlier) else {e.flow: e for e in earlier[number].flows}
        return [
            {each.partition: getattr(each, name) for each in by_flow[flow.flow].partitions}
            if flow.flow in by_flow
            else {}
            for flow in unit.flows
        ]

    def of_target(unit: UnitScope) -> list[Mapping[int, int | None]]:
        earlier = _earlier(unit)
        if number >= len(earlier):
            return []
        return [{each.partition: each.end for each in earlier[number].partitions}]

    start, end, taken_at, max_pending = (
        units.per_unit(lambda unit, of_name=name: of(unit, of_name))  # type: ignore[misc]
        for name in ("start", "end", "taken_at", "max_pending")
    )
    known_from, source_end, next_offset = (
        units.per_partition(
            lambda unit, of_name=name: of_source(unit, of_name),  # type: ignore[misc]
            F.col("flow"),
        )
        for name in ("known_from", "end", "next_offset")
    )
    target_end = F.coalesce(units.per_partition(of_target, F.lit(0), copied_to), F.lit(0))
    ts = F.col("ts")
    due = F.coalesce(offset < next_offset, F.lit(False)) | (taken_at - ts > max_pending)
    within = (ts >= start) & (ts < end) & (offset >= known_from) & (offset < source_end)
    return F.coalesce(within & (copy >= target_end) & due, F.lit(False))
