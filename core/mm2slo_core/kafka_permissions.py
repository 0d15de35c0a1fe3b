"""Kafka permissions that exporter, audit and MirrorMaker 2 need, and checks against ACLs.

`REQUIRED_PERMISSIONS` is the one list for docs, checks and ACLs; `FlowResources` gives the names of
a flow's resources by role. Sources: Kafka's `KafkaApis` and `ControllerApis` (what a request
needs), and the requests of `MirrorSourceConnector`, `MirrorCheckpointConnector`,
`MirrorCheckpointTask` and `KafkaBasedLog`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final, Literal, NamedTuple

from mm2slo_core.config.exporter_settings import CanaryCarrier, CanarySettings, ExporterSettings
from mm2slo_core.java_values import split_list
from mm2slo_core.replication_policy import (
    HEARTBEATS_TOPIC,
    InternalTopics,
    ReplicationPolicy,
)
from mm2slo_core.topology import Flow

Component = Literal["exporter", "audit", "mirrormaker2"]
ResourceKind = Literal["topic", "group", "cluster", "transactional-id"]

LEADER_GROUPS: Final = "mm2slo.leader."
"""Prefix of the groups in which replicas elect the one that writes."""

CANARY_GROUPS: Final = "mm2slo.canary."
"""Prefix of the groups by which replicas lease the numbers that name their canaries."""

Operation = Literal[
    "Read", "Write", "Create", "Delete", "Alter", "Describe", "DescribeConfigs", "AlterConfigs"
]

# Kafka's StandardAuthorizer: Read, Write, Delete and Alter imply Describe, and AlterConfigs implies
# DescribeConfigs.
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
    CANARY_GROUP = f"`{CANARY_GROUPS}*`", "group"
    LEADER_GROUP = f"`{LEADER_GROUPS}*`", "group"
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
         "missing records are unauditable where the target has removed any"),
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
    # CreatePartitions needs Alter: partitions that the source gains are added to the copy.
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
    # OffsetCommit needs Read on the group and on each topic, as for a consumer.
    _row("mirrormaker2 target GROUPS Read", "committed offsets", "offsets are not synced",
         SYNC_GROUP_OFFSETS),
    _row("mirrormaker2 target TOPICS Read", "committed offsets", "offsets are not synced",
         SYNC_GROUP_OFFSETS),
    # DescribeAcls needs Describe and CreateAcls needs Alter, both on the cluster (AclApis).
    _row("mirrormaker2 source CLUSTER Describe", "ACLs of topics", "ACLs are not synced",
         "sync.topic.acls.enabled"),
    _row("mirrormaker2 target CLUSTER Alter", "ACLs of topics", "ACLs are not synced",
         "sync.topic.acls.enabled"),
    _row("mirrormaker2 target TRANSACTIONS Write", "transactions", "tasks do not start",
         "exactly.once.source.support"),
)
# fmt: on


class AclGrant(NamedTuple):
    """One operation on one resource that a principal must be allowed."""

    cluster: str
    kind: ResourceKind
    pattern: AclPattern
    operation: Operation


@dataclass(frozen=True, slots=True)
class FlowResources:
    """The names of a flow's resources; a role without a name needs no permission.

    *topics* and *groups* are MirrorMaker 2's regular expressions, *settings* those that are on and
    need permissions (`sync.group.offsets.enabled`), *worker_group* is the `group.id` of its
    workers, *canary_topic* the topic that carries canaries on the source, *leases_instance* whether
    replicas are numbered by a consumer group there. *internal* is None for
    other engines.
    """

    flow: Flow
    policy: ReplicationPolicy
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    internal: InternalTopics | None
    settings: frozenset[str] = frozenset()
    worker_group: str | None = None
    canary_topic: str | None = None
    state_topic: str | None = None
    timeline_topic: str | None = None
    arrivals_topic: str | None = None
    leases_instance: bool = False

    def written_by(self, exporter: ExporterSettings, canary: CanarySettings) -> FlowResources:
        """These with the own topics of *exporter*, which sends *canary* through the flow."""
        carriers = {CanaryCarrier.TOPIC: canary.topic, CanaryCarrier.HEARTBEATS: HEARTBEATS_TOPIC}
        timeline = exporter.timeline
        return replace(
            self,
            canary_topic=carriers.get(exporter.carrier(canary)),
            state_topic=None if exporter.read_only else exporter.state.topic,
            timeline_topic=timeline.topic if exporter.writes_timeline else None,
            arrivals_topic=timeline.arrivals_topic if exporter.writes_arrivals else None,
            leases_instance=exporter.instance is None,
        )

    def required(
        self, *components: Component
    ) -> Iterator[tuple[RequiredPermission, str, tuple[AclPattern, ...]]]:
        """Each permission that *components* need, the cluster, and the resources there."""
        for row in REQUIRED_PERMISSIONS:
            if row.component in components and (
                not row.settings or self.settings.intersection(row.settings)
            ):
                for place, cluster in (("source", self.flow.source), ("target", self.flow.target)):
                    if row.place in {place, "both"} and (found := self._patterns(row, cluster)):
                        yield row, cluster, found

    def _patterns(self, row: RequiredPermission, cluster: str) -> tuple[AclPattern, ...]:
        if row.role is Role.GROUPS:
            return acl_patterns(self.groups) if self.internal else ()
        if row.role is not Role.TOPICS:
            names = self._names(cluster).get(row.role, ())
            return tuple(AclPattern.parse(name) for name in names if name)
        found = acl_patterns(self.topics)
        if self.internal and row.component != "audit":
            # MirrorMaker 2 replicates heartbeats whatever the filter.
            found = (*found, AclPattern(HEARTBEATS_TOPIC))
        if cluster == self.flow.source:
            return found
        copies = (
            self.policy.remote_topic(self.flow.source, name.removesuffix(ALL_NAMES))
            + ALL_NAMES * (prefixed or name == ALL_NAMES)
            for name, prefixed in found
        )
        return tuple(map(AclPattern.parse, copies))

    def _names(self, cluster: str) -> dict[Role, tuple[str | None, ...]]:
        """Names on *cluster*, for roles with fixed names; a final `*` marks a prefix."""
        internal, workers, canary = self.internal, self.worker_group, self.canary_topic
        if canary and cluster == self.flow.target:
            canary = self.policy.remote_topic(self.flow.source, canary)
        names: dict[Role, tuple[str | None, ...]] = {
            Role.CANARY: (canary,),
            Role.CANARY_GROUP: (f"{CANARY_GROUPS}*" if canary and self.leases_instance else None,),
            Role.STATE: (self.state_topic,),
            Role.LEADER_GROUP: (self.state_topic and f"{LEADER_GROUPS}*",),
            Role.TIMELINE: (self.timeline_topic,),
            Role.ARRIVALS: (self.arrivals_topic,),
            Role.SPARK_GROUPS: ("spark-kafka-*",),
            Role.CLUSTER: ("kafka-cluster",),
            Role.WORKER_GROUP: (workers,),
            # `Worker.taskTransactionalId` and `DistributedConfig.transactionalProducerId`.
            Role.TRANSACTIONS: (
                workers and f"{workers}-*",
                workers and f"connect-cluster-{workers}",
            ),
        }
        if internal is not None:
            syncs = internal.offset_syncs
            names |= {
                Role.HEARTBEATS: (internal.remote_heartbeats.topic,),
                Role.OWN_HEARTBEATS: (HEARTBEATS_TOPIC,),
                Role.OFFSET_SYNCS: (syncs.topic if syncs.cluster == cluster else None,),
                Role.CHECKPOINTS: (internal.checkpoints.topic,),
                Role.OFFSETS: (internal.connect_offsets.topic,),
                Role.HEARTBEAT_CONFIGS: (internal.heartbeat_configs.topic,),
                Role.CONFIGS: (internal.connect_configs.topic,),
                Role.STATES: (internal.connect_status.topic, internal.connect_configs.topic),
            }
        return names


class RequiredAccess(NamedTuple):
    """An operation on one resource."""

    kind: ResourceKind
    name: str
    operation: Operation

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name}"


Answers = Mapping[RequiredAccess, bool]
"""Whether the user is allowed to; absent where the cluster does not report it."""


def required_access(
    resources: FlowResources, visible: Mapping[tuple[str, Role], Collection[str]]
) -> Iterator[tuple[RequiredPermission, str, list[RequiredAccess]]]:
    """Each permission of exporter and audit, the cluster, and the accesses it consists of.

    *visible* are the existing replicated topics and groups, by cluster. Literal names are needed
    whether they are visible or not.
    """
    for row, cluster, patterns in resources.required("exporter", "audit"):
        names = set(visible.get((cluster, row.role), ()))
        if row.role in {Role.SPARK_GROUPS, Role.CANARY_GROUP, Role.LEADER_GROUP}:
            # Any name shows what the prefix allows.
            names.update(f"{pattern.name}mm2slo" for pattern in patterns)
        names.update(name for name, prefixed in patterns if not prefixed and name != ALL_NAMES)
        kind = row.role.kind
        yield (
            row,
            cluster,
            [RequiredAccess(kind, n, op) for op in row.operations for n in sorted(names)],
        )


def permission_result(
    where: str,
    row: RequiredPermission,
    cluster: str,
    needed: list[RequiredAccess],
    answers: Answers,
) -> CheckResult:
    """Compare *needed* with the ACLs' *answers*; an access without an answer is not denied."""
    denied = [str(each) for each in needed if answers.get(each) is False]
    if denied:
        finding = f"{row.component} is denied {shorten_list(denied)}: {row.without}".replace(
            "`", ""
        )
        remedy = f"grant it to this user on cluster {cluster}"
        return CheckResult(where, "permission", "fix", finding, remedy)
    names = shorten_list(sorted({each.name for each in needed})) or f"({row.role.title})"
    what = f"{row.component}: {', '.join(row.operations)} on {row.role.kind} {names} of {cluster}"
    if not needed:
        return CheckResult(where, "permission", "unknown", f"{what}: none is visible")
    if unknown := [str(each) for each in needed if each not in answers]:
        finding = f"{what}: the cluster does not report {shorten_list(unknown)}"
        return CheckResult(where, "permission", "unknown", finding)
    return CheckResult(where, "permission", "ok", what)


class AclRule(NamedTuple):
    """One ACL binding; *operation* as in Kafka's documentation, also `All`."""

    principal: str
    kind: ResourceKind
    pattern: AclPattern
    operation: str
    allows: bool = True


class ReaderParity(NamedTuple):
    """A reader of the source, and what its counterpart may not read on the target."""

    principal: str
    counterpart: str
    denied: tuple[str, ...]


def reader_parity(
    source: Collection[AclRule],
    target: Collection[AclRule],
    copies: Mapping[str, str],
    groups: Collection[str],
    counterparts: Mapping[str, str],
) -> Iterator[ReaderParity]:
    """Each principal that may read a replicated topic and a group on the source.

    *copies* maps topics to their copies, *counterparts* principals of the source to those of the
    target; others have the same name on both.
    """
    for principal in sorted({rule.principal for rule in source if rule.allows}):
        topics = [
            copies[each] for each in sorted(copies) if _reads(source, principal, "topic", each)
        ]
        read = [each for each in sorted(groups) if _reads(source, principal, "group", each)]
        if topics and read:
            other = counterparts.get(principal, principal)
            denied = [f"topic {n}" for n in topics if not _reads(target, other, "topic", n)]
            denied += [f"group {n}" for n in read if not _reads(target, other, "group", n)]
            yield ReaderParity(principal, other, tuple(denied))


def _reads(rules: Collection[AclRule], principal: str, kind: ResourceKind, name: str) -> bool:
    """As Kafka's `StandardAuthorizer`: rules of `User:*` apply to all, DENY wins over ALLOW."""
    verdicts = {
        rule.allows
        for rule in rules
        if (rule.principal in {principal, "User:*"} and rule.kind == kind)
        and (rule.operation in {"Read", "All"} and rule.pattern.covers(AclPattern(name)))
    }
    return verdicts == {True}


ALL_NAMES = "*"

# A dot without a quantifier is taken as a dot: `orders.v1` is nearly always meant as that name.
_LITERAL = re.compile(r"(?:(?:[\w-]|\\[.-]|\.(?![*+?{]))(?![*+?{]))*", re.ASCII)


class AclPattern(NamedTuple):
    """Kafka's `ResourcePattern`: PREFIXED or LITERAL, where the literal name `*` is all names."""

    name: str
    prefixed: bool = False

    @classmethod
    def parse(cls, text: str) -> AclPattern:
        """`orders` is that name, `orders*` and `*` are prefixes."""
        prefix = text.removesuffix(ALL_NAMES)
        return cls(prefix or ALL_NAMES, prefixed=0 < len(prefix) < len(text))

    def covers(self, other: AclPattern) -> bool:
        """Whether this pattern matches every name that *other* matches."""
        # A prefix does not match the literal resource `*`, which is all names for Kafka.
        if self.prefixed:
            return other.name.startswith(self.name) and other.name != ALL_NAMES
        return self.name == ALL_NAMES or self == other


def acl_patterns(expressions: Iterable[str]) -> tuple[AclPattern, ...]:
    """The narrowest ACL patterns for MirrorMaker 2's lists of regular expressions.

    `orders` is a literal name, `orders.*` a prefix; an expression without a literal start is `*`.
    """
    found: dict[AclPattern, None] = {}
    for expression in (each for entry in expressions for each in split_list(entry)):
        for alternative in [expression] if "(" in expression else expression.split("|"):
            literal = (_LITERAL.match(alternative) or [""])[0]
            is_prefix = literal != alternative
            found[AclPattern.parse(literal.replace("\\", "") + ALL_NAMES * is_prefix)] = None
    return tuple(found)


CheckState = Literal["ok", "fix", "unknown"]


class CheckResult(NamedTuple):
    """What was found on a cluster or flow (*where*), and what to do. *check* is a stable name."""

    where: str
    check: str
    state: CheckState
    finding: str
    remedy: str = ""


def shorten_list(names: list[str], most: int = 3) -> str:
    """`a, b, c and 2 more`."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
