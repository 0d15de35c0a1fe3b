"""Generated units with slices, whose target ranges come from the records themselves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_core.audit.audit_scope import SlicePlan
from mm2slo_core.audit.record_sample import Sample
from mm2slo_core.audit.reference import judge
from mm2slo_core.audit.source_slices import (
    OffsetRange,
    bound_by_slices,
    conclude_slices,
    plan_slices,
    slice_ranges,
)
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from generated_units import Generated

    from mm2slo_core.audit.audit_record import ArrivalPoll, AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.unit_outcome import UnitOutcome


def sliced(unit: Generated, sample: Sample, *, margin: int) -> UnitScope:
    """The scope of *unit* with slices; target ranges reach *margin* offsets beyond the copies."""
    scope = unit.scope
    sources = {each.partition: each for each in scope.flows[0].partitions}
    targets = {each.partition: each for each in scope.partitions}
    copies: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for each in unit.records:
        if each.side is Side.TARGET:
            copies[each.partition, each.fingerprint].append(each.offset)
    held = {
        (each.partition, each.offset): each.fingerprint
        for each in unit.records
        if each.side is Side.SOURCE
    }
    slices = []
    ranges = [OffsetRange(each.partition, each.read_from, each.end) for each in sources.values()]
    for piece in plan_slices(scope.target_topic, ranges, 1.0, sample):
        offsets = [
            copy
            for offset in range(piece.start, piece.end)
            for copy in copies.get((piece.partition, held.get((piece.partition, offset), 0)), ())
        ]
        of_target = targets[piece.partition]
        low = max(of_target.read_from, min(offsets, default=of_target.read_from) - margin)
        high = min(of_target.end, max(offsets, default=of_target.read_from) + margin)
        slices.append(piece._replace(target=(low, high)))
    return replace(scope, sampled=SlicePlan(tuple(slices), 1.0))


def read_slices(scope: UnitScope, records: Iterable[AuditRecord]) -> Iterator[AuditRecord]:
    """The records that a scan of the slices of *scope* reads."""
    ranges = dict(zip((Side.SOURCE, Side.TARGET), slice_ranges(scope), strict=True))
    for each in records:
        if any(
            number == each.partition and start <= each.offset < end
            for number, start, end in ranges[each.side]
        ):
            yield each


def judge_slices(
    scope: UnitScope, records: Sequence[AuditRecord], polls: Sequence[ArrivalPoll]
) -> UnitOutcome:
    """The outcome of the slices of *scope*, by the reference."""
    read = list(read_slices(scope, records))
    return conclude_slices(scope, judge(read, polls, bound_by_slices(scope), Sample(1.0)))
