"""Late copies: an earlier audit read the target before they arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_core.audit.audit_scope import SourcePartition, UnitScope
    from mm2slo_core.audit.reference.record_groups import Pair


def is_late(pair: Pair, scope: UnitScope) -> bool:
    """Return whether an audit in `scope.earlier` judged the record of *pair* lost or overdue."""
    flow = scope.flows[pair[0].flow].flow
    for earlier in scope.earlier:
        partitions = {
            each.partition: each
            for of_flow in earlier.flows
            if of_flow.flow == flow
            for each in of_flow.partitions
        }
        source = partitions.get(pair[0].partition)
        if source is not None and _was_missing(pair, source, earlier):
            return True
    return False


def _was_missing(pair: Pair, source: SourcePartition, earlier: UnitScope) -> bool:
    record, copy = pair
    ends = {each.partition: each.end for each in earlier.partitions}
    due = source.next_offset is not None and record.offset < source.next_offset
    return (
        earlier.window.contains(record.timestamp)
        and source.known_from <= record.offset < source.end
        and copy.offset >= ends.get(copy.partition, 0)
        and (due or earlier.taken_at - record.timestamp > earlier.max_pending)
    )
