"""Refreshes log starts after retention may have deleted records during the read."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mm2slo_audit.scope.offset_snapshot import partitions_of
from mm2slo_audit.scope.scope_bounds import apply_log_starts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_audit.scope.copy_map import CopyMap
    from mm2slo_audit.scope.scope_bounds import CopyKey, Starts
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.topology import TopicPartition
    from mm2slo_kafka.cluster_client import ClusterClient


def refresh_log_starts(
    scopes: Sequence[UnitScope],
    copies: Sequence[Mapping[CopyKey, CopyMap]],
    clients: Mapping[str, ClusterClient],
) -> list[UnitScope] | None:
    """The scopes with current log starts; None if nothing they read was deleted.

    *copies* by index of the scope. Raises KafkaOperationError.
    """
    wanted: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for scope in scopes:
        for flow in scope.flows:
            counts = {flow.source_topic: len(flow.partitions)}
            wanted[flow.flow.source] += partitions_of([flow.source_topic], counts)
        counts = {scope.target_topic: len(scope.partitions)}
        wanted[scope.flows[0].flow.target] += partitions_of([scope.target_topic], counts)
    starts = {
        alias: clients[alias].start_offsets(list(dict.fromkeys(keys))).offsets
        for alias, keys in wanted.items()
    }
    found = [
        apply_log_starts(
            scope,
            copies[scope.index],
            {
                index: _of(starts[flow.flow.source], flow.source_topic)
                for index, flow in enumerate(scope.flows)
            },
            _of(starts[scope.flows[0].flow.target], scope.target_topic),
        )
        for scope in scopes
    ]
    moved = any(
        _read_starts(new) != _read_starts(old) for new, old in zip(found, scopes, strict=True)
    )
    return found if moved else None


def _of(starts: Mapping[TopicPartition, int], topic: str) -> Starts:
    return {key.partition: start for key, start in starts.items() if key.topic == topic}


def _read_starts(scope: UnitScope) -> list[int]:
    sources = [each.read_from for flow in scope.flows for each in flow.partitions]
    return [*sources, *(each.read_from for each in scope.partitions)]
