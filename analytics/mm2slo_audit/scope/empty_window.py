"""Whether there is anything of the window to judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_audit.scope.offset_lookups import first_timestamps
from mm2slo_core.audit.audit_scope import NotAudited, NotAuditedReason
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.audit.audit_scope import FlowScope, UnitScope
    from mm2slo_kafka.cluster_client import ClusterClient


def explain_empty_window(
    scope: UnitScope, clients: Mapping[str, ClusterClient]
) -> NotAudited | None:
    """Why the unit has no verdict: the window is gone from the source, or was empty. None: it has.

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
            "no record of the window or after it, on either side",
            flows,
        )
    if not sources or not all(_gone(flow, scope, clients) for flow in scope.flows):
        return None
    if not any(each.log_start for each in sources):
        return None
    return NotAudited(
        scope.target_topic,
        NotAuditedReason.EXPIRED,
        "the oldest records of "
        + " and ".join(f"{flow.source_topic} on {flow.flow.source}" for flow in scope.flows)
        + " are younger than the window",
        flows,
    )


def _gone(flow: FlowScope, scope: UnitScope, clients: Mapping[str, ClusterClient]) -> bool:
    """Whether nothing that is left of the source can be of the window."""
    left = {
        TopicPartition(flow.source_topic, each.partition): (each.read_from, each.end)
        for each in flow.partitions
        if each.read_from < each.end
    }
    # A log whose first record of the window's time is not its first of all still holds it.
    started = [each for each in flow.partitions if each.read_from < each.end]
    if any(each.read_from > each.log_start or each.log_start == 0 for each in started):
        return False
    found = first_timestamps(clients[flow.flow.source], left)
    return all(key in found and found[key] >= scope.window.end for key in left)
