"""What log starts mean for a scope, at first and when retention has moved on (pure)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_audit.scope.copy_map import CopyMap
    from mm2slo_core.audit.audit_scope import SourcePartition, TargetPartition, UnitScope

CopyKey = tuple[int, int]
"""Index of the flow within the unit, and partition."""
Starts = dict[int, int]
"""Log start by partition."""


def apply_bounds(scope: UnitScope, copies: Mapping[CopyKey, CopyMap]) -> UnitScope:
    """*scope* with `known_from` and `auditable_from` as its log starts allow."""
    # Another engine with other partitions may copy to any of them: the worst is everyone's.
    anywhere = not scope.flows[0].has_positions and any(
        len(flow.partitions) != len(scope.partitions) for flow in scope.flows
    )
    starts = {each.partition: each.log_start for each in scope.partitions}
    if anywhere:
        worst = max(starts.values(), default=0)
        starts = {each.partition: worst for flow in scope.flows for each in flow.partitions}
    flows = tuple(
        replace(
            flow,
            partitions=tuple(
                _judged(each, copies.get((index, each.partition)), starts)
                for each in flow.partitions
            ),
        )
        for index, flow in enumerate(scope.flows)
    )
    floors: Starts = {}
    for index, flow in enumerate(flows):
        for source in flow.partitions:
            copy = copies.get((index, source.partition))
            if copy is not None:
                floor = copy.auditable_from(_begin(source, copy, scope))
                floors[source.partition] = max(floor, floors.get(source.partition, 0))
    if anywhere:
        removed = any(each.log_start for flow in flows for each in flow.partitions)
        floors = {each.partition: each.end if removed else 0 for each in scope.partitions}
    return replace(
        scope,
        flows=flows,
        partitions=tuple(
            replace(each, auditable_from=floors.get(each.partition, 0)) for each in scope.partitions
        ),
    )


def apply_log_starts(
    scope: UnitScope,
    copies: Mapping[CopyKey, CopyMap],
    source_starts: Mapping[int, Starts],
    target_starts: Starts,
) -> UnitScope:
    """*scope* after log starts have moved: by flow and partition, and by target partition.

    What lies below is not read, and what was copied from or to there is not judged.
    """
    flows = tuple(
        replace(
            flow,
            partitions=tuple(
                _source_above(each, source_starts.get(index, {})) for each in flow.partitions
            ),
        )
        for index, flow in enumerate(scope.flows)
    )
    partitions = tuple(_target_above(each, target_starts) for each in scope.partitions)
    return apply_bounds(replace(scope, flows=flows, partitions=partitions), copies)


def _begin(source: SourcePartition, copy: CopyMap, scope: UnitScope) -> int:
    """From which source offset on a copy has its record among those that are read.

    Where timestamps are kept, a copy of what precedes the window does so as well.
    """
    stamped = not scope.identity.timestamp and copy.runs is not None
    return source.read_from if stamped else source.log_start


def _judged(
    source: SourcePartition, copy: CopyMap | None, target_starts: Starts
) -> SourcePartition:
    if copy is None:
        return source
    start = target_starts.get(source.partition, 0)
    return replace(source, known_from=copy.judged_from(start))


def _source_above(each: SourcePartition, starts: Starts) -> SourcePartition:
    start = max(each.log_start, starts.get(each.partition, 0))
    read_from = max(each.read_from, start)
    return replace(each, log_start=start, read_from=read_from, end=max(each.end, read_from))


def _target_above(each: TargetPartition, starts: Starts) -> TargetPartition:
    start = max(each.log_start, starts.get(each.partition, 0))
    read_from = max(each.read_from, start)
    return replace(each, log_start=start, read_from=read_from, end=max(each.end, read_from))
