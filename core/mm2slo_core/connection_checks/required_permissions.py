"""The Kafka permissions that exporter, audit and MirrorMaker 2 need: one list for docs and ACLs.

Sources: Kafka's `KafkaApis` and `ControllerApis` (what a request needs), and the requests of
`MirrorSourceConnector`, `MirrorCheckpointConnector`, `MirrorCheckpointTask` and `KafkaBasedLog`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal, NamedTuple

Component = Literal["exporter", "audit", "mirrormaker2"]
ResourceKind = Literal["topic", "group", "cluster", "transactional-id"]
Operation = Literal[
    "Read", "Write", "Create", "Delete", "Alter", "Describe", "DescribeConfigs", "AlterConfigs"
]
_GRANTED_BY: dict[Operation, set[Operation]] = {
    "Describe": {"Describe", "Read", "Write", "Alter", "Delete"},
    "DescribeConfigs": {"DescribeConfigs", "AlterConfigs"},
}


def granted_by(operation: Operation) -> set[Operation]:
    """The operations that include *operation* for Kafka's authorizers."""
    return _GRANTED_BY.get(operation, {operation})


class Role(Enum):
    """What a resource is for a flow."""

    TOPICS = "replicated topics"
    HEARTBEATS = "`*.heartbeats`"
    OWN_HEARTBEATS = "`heartbeats`"
    OFFSET_SYNCS = "`mm2-offset-syncs.*.internal` (on one of both)"
    CHECKPOINTS = "`*.checkpoints.internal`"
    OFFSETS = "`mm2-offsets.*.internal`"
    HEARTBEAT_CONFIGS = "`mm2-configs.*.internal` of the opposite flow"
    CONFIGS = "`mm2-configs.*.internal`"
    STATES = "`mm2-status.*.internal`, `mm2-configs.*.internal`"
    CANARY = "`heartbeats` or the canary topic"
    STATE = "`mm2slo.state.internal`"
    TIMELINE = "`mm2slo.watermarks.internal`"
    ARRIVALS = "`mm2slo.arrivals.internal`"
    GROUPS = "replicated groups", "group"
    CANARY_GROUP = "`mm2slo.canary.*`", "group"
    LEADER_GROUP = "`mm2slo.leader.*`", "group"
    SPARK_GROUPS = "`spark-kafka-*`", "group"
    WORKER_GROUP = "group of the Connect workers", "group"
    CLUSTER = "the cluster", "cluster"
    TRANSACTIONS = "transactional ids of the Connect workers", "transactional-id"

    def __init__(self, title: str, kind: ResourceKind = "topic") -> None:
        self.title = title
        self.kind = kind


class RequiredPermission(NamedTuple):
    """What a component does with a resource, and what is lost without it.

    *place* is the cluster of a flow.
    """

    component: Component
    place: Literal["source", "target", "both"]
    role: Role
    operations: tuple[Operation, ...]
    purpose: str
    without: str
    settings: tuple[str, ...]
    """Those of which one must be on to make it necessary, if it is not always."""


def _row(needed: str, purpose: str, without: str, *settings: str) -> RequiredPermission:
    component, place, role, *operations = needed.split()
    row: Any = component, place, Role[role], tuple(operations), purpose, without, settings
    return RequiredPermission(*row)


SYNC_GROUP_OFFSETS: Final = "sync.group.offsets.enabled"

_NO_STATE = "losses are published as pending, but not counted; no timeline is written"
_NO_TIMELINE = "after a restart, lag in seconds comes from record timestamps"
# fmt: off
REQUIRED_PERMISSIONS = (
    _row("exporter both TOPICS Describe", "end and start offsets", "no lag, no positions"),
    _row("exporter both TOPICS DescribeConfigs", "retention headroom in seconds, drift",
         "neither is published"),
    _row("exporter source TOPICS Read", "age of the oldest unreplicated record",
         "lag in seconds only from the timeline; transaction markers count as a lag of 1"),
    _row("exporter both OFFSET_SYNCS Read", "positions", "committed positions only"),
    _row("exporter target CHECKPOINTS Read", "failover readiness", "groups are not ready"),
    _row("exporter target OFFSETS Read", "committed positions", "groups are not ready"),
    _row("exporter target STATES Read", "task states, assignments", "groups are not ready"),
    _row("exporter source HEARTBEAT_CONFIGS Read", "heartbeat interval, disabled heartbeats",
         "both as configured"),
    _row("exporter target HEARTBEATS Read", "heartbeat age and latency", "neither is published"),
    _row("exporter source GROUPS Describe", "failover readiness, lag",
         "no readiness and no lag of these groups"),
    _row("exporter target GROUPS Describe", "failover readiness, lag",
         "groups with a checkpoint are not ready; no lag on the target"),
    _row("exporter source CANARY Read Write Create", "canaries",
         "availability by MirrorMaker 2's heartbeats; set `canary: {carrier: off}`"),
    _row("exporter source CANARY_GROUP Read", "a number for each replica, in its canaries",
         "no canaries, unless `exporter.instance` is set"),
    _row("exporter target CANARY Read", "canary arrivals", "canaries are not measured"),
    _row("exporter target STATE Read Write Create", "losses and verdicts that survive restarts",
         _NO_STATE),
    _row("exporter target LEADER_GROUP Read", "election of the replica that writes", _NO_STATE),
    _row("exporter target TIMELINE Read Write Create", "the watermark timeline", _NO_TIMELINE),
    _row("exporter target ARRIVALS Write Create", "arrival times of the last 24 hours",
         "latency of audits within the poll interval instead of 300 ms"),
    _row("audit both TOPICS Read", "records of both clusters", "the topic is not audited"),
    _row("audit both TOPICS DescribeConfigs", "compaction, timestamp type",
         "both count as Kafka's defaults"),
    _row("audit both OFFSET_SYNCS Read", "first replicated offsets",
         "missing records below the committed position are unauditable"),
    _row("audit target OFFSETS Read", "committed positions",
         "missing records are pending, then overdue, never lost"),
    _row("audit target CONFIGS Read", "settings of running connectors",
         "isolation and exactly-once as configured"),
    _row("audit target TIMELINE Read", "arrival times", "no latency"),
    _row("audit target ARRIVALS Read", "arrival times of the last 24 hours",
         "latency within the poll interval instead of 300 ms"),
    _row("audit both SPARK_GROUPS Read", "Spark's consumers", "the topic is not audited"),
    _row("mirrormaker2 source TOPICS Read DescribeConfigs", "records, settings of new topics",
         "the topic is not replicated"),
    _row("mirrormaker2 target TOPICS Create Write Alter", "copies and their partitions",
         "the topic is not replicated"),
    _row("mirrormaker2 target TOPICS AlterConfigs", "settings of copies", "settings drift",
         "sync.topic.configs.enabled"),
    _row("mirrormaker2 both OFFSET_SYNCS Create Read Write", "offset syncs", "no checkpoints"),
    _row("mirrormaker2 target CHECKPOINTS Create Read Write", "checkpoints",
         "groups cannot fail over"),
    _row("mirrormaker2 target OWN_HEARTBEATS Create Write", "heartbeats", "no heartbeats",
         "emit.heartbeats.enabled"),
    _row("mirrormaker2 target OFFSETS Create Read Write DescribeConfigs", "source offsets",
         "the workers do not start"),
    _row("mirrormaker2 target STATES Create Read Write DescribeConfigs", "connectors and tasks",
         "the workers do not start"),
    _row("mirrormaker2 target WORKER_GROUP Read", "tasks", "the workers do not start"),
    _row("mirrormaker2 source GROUPS Describe", "checkpoints", "groups cannot fail over"),
    _row("mirrormaker2 target GROUPS Read", "committed offsets", "offsets are not synced",
         SYNC_GROUP_OFFSETS),
    _row("mirrormaker2 target TOPICS Read", "committed offsets", "offsets are not synced",
         SYNC_GROUP_OFFSETS),
    _row("mirrormaker2 source CLUSTER Describe", "ACLs of topics", "ACLs are not synced",
         "sync.topic.acls.enabled"),
    _row("mirrormaker2 target CLUSTER Alter", "ACLs of topics", "ACLs are not synced",
         "sync.topic.acls.enabled"),
    _row("mirrormaker2 target TRANSACTIONS Write", "transactions", "tasks do not start",
         "exactly.once.source.support"),
)
# fmt: on
