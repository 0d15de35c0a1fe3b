"""Detects units without records in the window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_audit.scope.offset_lookups import read_first_timestamps
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.audit.audit_scope import FlowScope, UnitScope
    from mm2slo_kafka.cluster_client import ClusterClient


def explain_empty_window(
    scope: UnitScope, clients: Mapping[str, ClusterClient]
) -> NotAudited | None:
    """Why nothing can be judged: the window expired on the source or is empty. None: it can.

    Raises KafkaOperationError.
    """
    flows = tuple(flow.flow for flow in scope.flows)
    sources = [each for flow in scope.flows for each in flow.partitions]
    if any(each.expired for each in sources):
        return None
    if all(each.read_from == each.end for each in sources) and all(
        each.read_from == each.end for each in scope.partitions
    ):
        return NotAudited(
            scope.target_topic,
            NotAuditedReason.EMPTY,
            "neither side has records in the window or after it",
            flows,
        )
    if not sources or not all(_is_expired(flow, scope, clients) for flow in scope.flows):
        return None
    if not any(each.log_start for each in sources):
        return None
    return NotAudited(
        scope.target_topic,
        NotAuditedReason.EXPIRED,
        "the oldest records of "
        + " and ".join(f"{flow.source_topic} on {flow.flow.source}" for flow in scope.flows)
        + " are newer than the window",
        flows,
    )


def _is_expired(flow: FlowScope, scope: UnitScope, clients: Mapping[str, ClusterClient]) -> bool:
    """Whether no remaining source record can be in the window."""
    left = {
        TopicPartition(flow.source_topic, each.partition): (each.read_from, each.end)
        for each in flow.partitions
        if each.read_from < each.end
    }
    # A log with records before the window still has the window.
    started = [each for each in flow.partitions if each.read_from < each.end]
    if any(each.read_from > each.log_start or each.log_start == 0 for each in started):
        return False
    found = read_first_timestamps(clients[flow.flow.source], left)
    return all(key in found and found[key] >= scope.window.end for key in left)
