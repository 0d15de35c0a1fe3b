"""Names of a flow's resources by role, and the ACLs of least privilege for a component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.connection_checks.acl_patterns import ALL_NAMES, AclPattern, acl_patterns
from mm2slo_core.connection_checks.required_permissions import (
    REQUIRED_PERMISSIONS,
    Component,
    Operation,
    RequiredPermission,
    ResourceKind,
    Role,
    granted_by,
)
from mm2slo_core.replication_policy import HEARTBEATS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.internal_topics import InternalTopics
    from mm2slo_core.replication_policy import ReplicationPolicy
    from mm2slo_core.topology import Flow


class AclGrant(NamedTuple):
    """One operation on one resource that a principal must be allowed."""

    cluster: str
    kind: ResourceKind
    pattern: AclPattern
    operation: Operation

    def implies(self, other: AclGrant) -> bool:
        """Whether a principal with this grant has *other* as well."""
        return (
            (self.cluster, self.kind) == (other.cluster, other.kind)
            and self.pattern.covers(other.pattern)
            and self.operation in granted_by(other.operation)
        )


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

    def grants(self, *components: Component) -> tuple[AclGrant, ...]:
        """What the principal of *components* must be allowed; no grant is implied by another."""
        found = {
            AclGrant(cluster, row.role.kind, pattern, operation)
            for row, cluster, patterns in self.required(*components)
            for pattern in patterns
            for operation in row.operations
        }
        return tuple(sorted(g for g in found if not any(o.implies(g) for o in found - {g})))

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
            Role.CANARY_GROUP: ("mm2slo.canary.*" if canary and self.leases_instance else None,),
            Role.STATE: (self.state_topic,),
            Role.LEADER_GROUP: (self.state_topic and "mm2slo.leader.*",),
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
