"""Bounds of a scope that follow from log starts, initially and after retention (pure)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_audit.scope.copy_map import CopyMap
    from mm2slo_core.audit.audit_scope import SourcePartition, TargetPartition, UnitScope

CopyKey = tuple[int, int]
"""Flow index within the unit, and partition."""
Starts = dict[int, int]
"""Log start by partition."""


def apply_bounds(scope: UnitScope, copies: Mapping[CopyKey, CopyMap]) -> UnitScope:
    """Set `known_from` and `auditable_from` from the log starts."""
    # Another engine with another partition count may copy to any partition: use the highest start.
    anywhere = not scope.flows[0].has_positions and any(
        len(flow.partitions) != len(scope.partitions) for flow in scope.flows
    )
    starts = {each.partition: each.log_start for each in scope.partitions}
    if anywhere:
        highest = max(starts.values(), default=0)
        starts = {each.partition: highest for flow in scope.flows for each in flow.partitions}
    flows = tuple(
        replace(
            flow,
            partitions=tuple(
                _with_known_from(each, copies.get((index, each.partition)), starts)
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
                floor = copy.auditable_from(_first_readable(source, copy, scope))
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
    """Apply moved log starts, by flow and partition and by target partition.

    Records below are not read, and their counterparts are not judged.
    """
    flows = tuple(
        replace(
            flow,
            partitions=tuple(
                _raise_source_start(each, source_starts.get(index, {})) for each in flow.partitions
            ),
        )
        for index, flow in enumerate(scope.flows)
    )
    partitions = tuple(_raise_target_start(each, target_starts) for each in scope.partitions)
    return apply_bounds(replace(scope, flows=flows, partitions=partitions), copies)


def _first_readable(source: SourcePartition, copy: CopyMap, scope: UnitScope) -> int:
    """The source offset from which a copy's record is among those read.

    If timestamps are kept, copies of records before the window are themselves before it.
    """
    stamped = not scope.identity.timestamp and copy.runs is not None
    return source.read_from if stamped else source.log_start


def _with_known_from(
    source: SourcePartition, copy: CopyMap | None, target_starts: Starts
) -> SourcePartition:
    if copy is None:
        return source
    start = target_starts.get(source.partition, 0)
    return replace(source, known_from=copy.judged_from(start))


def _raise_source_start(each: SourcePartition, starts: Starts) -> SourcePartition:
    start = max(each.log_start, starts.get(each.partition, 0))
    read_from = max(each.read_from, start)
    return replace(each, log_start=start, read_from=read_from, end=max(each.end, read_from))


def _raise_target_start(each: TargetPartition, starts: Starts) -> TargetPartition:
    start = max(each.log_start, starts.get(each.partition, 0))
    read_from = max(each.read_from, start)
    return replace(each, log_start=start, read_from=read_from, end=max(each.end, read_from))
