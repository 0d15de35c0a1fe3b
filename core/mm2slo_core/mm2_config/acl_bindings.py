"""ACLs of least privilege: lines of `kafka-acls.sh`, and Strimzi's `KafkaUser` (v1).

For the exporter with mm2slo.yaml's defaults: canaries in heartbeats, state and timeline.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.canary_config import CanaryCarrier
from mm2slo_core.config.exporter_config import StateConfig, TimelineConfig
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.connection_checks.acl_patterns import ALL_NAMES, AclPattern
from mm2slo_core.connection_checks.flow_resources import AclGrant, FlowResources
from mm2slo_core.connection_checks.required_permissions import (
    REQUIRED_PERMISSIONS,
    Component,
    Role,
    granted_by,
)
from mm2slo_core.internal_topics import PlacedTopic, internal_topics
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.mirror_setup import ConnectorKind
from mm2slo_core.mm2_config.portable_setup import portable_setup
from mm2slo_core.mm2_config.rendered_strimzi import resource, resource_name
from mm2slo_core.mm2_config.setting_effects import default_value
from mm2slo_core.replication_policy import HEARTBEATS_TOPIC
from mm2slo_core.topic_selection import replication_policy
from mm2slo_core.yaml_text import dump_yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.connection_checks.required_permissions import Operation, ResourceKind
    from mm2slo_core.mm2_config.mirror_setup import MirrorFlow, MirrorSetup
    from mm2slo_core.mm2_config.portable_setup import PortableSetup, Rendered

    Bindings = Iterator[tuple[str, ResourceKind, AclPattern, list[Operation]]]

Principals = Mapping[str, Collection[Component]]
"""What each principal is for."""

_WORKERS: Final = {Role.OFFSETS, Role.STATES, Role.WORKER_GROUP, Role.TRANSACTIONS}
# What connectors use, beyond what their workers do.
_ROLES: Final = {
    ConnectorKind.SOURCE: {Role.TOPICS, Role.OFFSET_SYNCS, Role.CLUSTER},
    ConnectorKind.CHECKPOINT: {Role.TOPICS, Role.OFFSET_SYNCS, Role.CHECKPOINTS, Role.GROUPS},
    ConnectorKind.HEARTBEAT: {Role.OWN_HEARTBEATS},
}


def render_acls(setups: Sequence[MirrorSetup], principals: Principals) -> Rendered:
    """Lines of `kafka-acls.sh` for what each of *principals* needs."""
    setup, text = portable_setup(setups), ""
    for principal, components in principals.items():
        for cluster, kind, (name, prefixed), operations in acl_bindings(setup, components):
            line = ["kafka-acls.sh", "--bootstrap-server"]
            line += [setup.client(cluster)["bootstrap.servers"]]
            line += ["--command-config", f"admin-{cluster}.properties"]
            line += ["--add", "--allow-principal", principal]
            line += [each for operation in operations for each in ("--operation", operation)]
            line += ["--cluster"] if kind == "cluster" else [f"--{kind}", name]
            line += ["--resource-pattern-type", "prefixed"] if prefixed else []
            text += f"{shlex.join(line)}\n"
    return {"acls.sh": text}, setup.findings


def render_kafka_users(setups: Sequence[MirrorSetup], principals: Principals) -> Rendered:
    """The `KafkaUser` of each of *principals* on each cluster where it needs permissions."""
    setup, files = portable_setup(setups), {}
    for principal, components in principals.items():
        user = resource_name(principal.removeprefix("User:").removeprefix("CN="))
        for cluster, bindings in groupby(acl_bindings(setup, components), lambda each: each[0]):
            acls = []
            for _, kind, (name, prefixed), operations in bindings:
                found = {"type": kind.replace("-id", "Id")}
                if kind != "cluster":
                    found |= {"name": name, "patternType": "prefix" if prefixed else "literal"}
                acls.append({"resource": found, "operations": operations})
            by_key = any(key.startswith("ssl.keystore.") for key in setup.client(cluster))
            spec = {
                "authentication": {"type": "tls" if by_key else "scram-sha-512"},
                "authorization": {"type": "simple", "acls": acls},
            }
            text = dump_yaml(resource("KafkaUser", user, spec, cluster))
            files[f"user-{user}-{resource_name(cluster)}.yaml"] = f"---\n{text}"
    return files, setup.findings


def acl_bindings(setup: PortableSetup, components: Collection[Component]) -> Bindings:
    """Cluster, resource and operations of what *components* need; none is implied by another."""
    grants: set[AclGrant] = set()
    for flow in setup.flows.values():
        roles = _WORKERS.union(*(_ROLES[kind] for kind in flow.connectors))
        replicates = ConnectorKind.SOURCE in flow.connectors
        grants |= {
            AclGrant(cluster, row.role.kind, pattern, operation)
            for row, cluster, patterns in _resources(setup, flow).required(*components)
            if (row.role in roles if row.component == "mirrormaker2" else replicates)
            for pattern in patterns
            for operation in row.operations
        }
    least = sorted(each for each in grants if not any(g in grants for g in _implying(each)))
    for (cluster, kind, pattern), group in groupby(least, lambda grant: grant[:3]):
        yield cluster, kind, pattern, [grant.operation for grant in group]


def _implying(grant: AclGrant) -> Iterator[AclGrant]:
    """All other grants that imply *grant*: there are few, while setups may have many grants."""
    name = grant.pattern.name
    patterns = {grant.pattern, AclPattern(ALL_NAMES)}
    if name != ALL_NAMES:
        patterns |= {AclPattern(name[:end], prefixed=True) for end in range(1, len(name) + 1)}
    for pattern in patterns:
        for operation in granted_by(grant.operation):
            wider = grant._replace(pattern=pattern, operation=operation)
            if wider != grant:
                yield wider


def _resources(setup: PortableSetup, flow: MirrorFlow) -> FlowResources:
    providers = setup.references.providers
    section, findings = flow_section(flow, setup.kafka_version, providers=providers)
    setup.findings.extend(findings)
    config = FlowConfig.model_validate(section)
    policy, (_, *topics) = replication_policy(config), flow.worker.names.values()
    internal = internal_topics(flow.flow, policy, config.offset_syncs_location)
    names = zip(("connect_offsets", "connect_configs", "connect_status"), topics, strict=True)
    placed = {k: PlacedTopic(flow.flow.target, t) for k, t in names if t and "${" not in t}
    canaries = HEARTBEATS_TOPIC if config.canary.carrier is CanaryCarrier.HEARTBEATS else None
    return FlowResources(
        flow.flow, policy, config.topics, config.groups, replace(internal, **placed),
        frozenset(_settings_on(flow)), flow.worker.group_id, canaries, StateConfig().topic,
        TimelineConfig().topic, TimelineConfig().arrivals_topic,
        leases_instance=True,
    )  # fmt: skip


def _settings_on(flow: MirrorFlow) -> Iterator[str]:
    """The settings that are on and need permissions."""
    given = {k: s for each in flow.connectors.values() for k, s in each.settings.items()}
    given |= flow.worker.settings
    of_mirrormaker = (row for row in REQUIRED_PERMISSIONS if row.component == "mirrormaker2")
    for name in {name for row in of_mirrormaker for name in row.settings}:
        value = given[name].value if name in given else default_value(name)
        if value.strip().lower() in {"true", "enabled"}:
            yield name
