"""The ACLs of a flow's resources, and which of them include others."""

from mm2slo_core.kafka_permissions import AclGrant, Component, FlowResources, granted_by


def implies(grant: AclGrant, other: AclGrant) -> bool:
    """Whether a principal with *grant* has *other* as well."""
    return (
        grant[:2] == other[:2]
        and grant.pattern.covers(other.pattern)
        and grant.operation in granted_by(other.operation)
    )


def least_grants(resources: FlowResources, *components: Component) -> list[AclGrant]:
    """What the principal of *components* must be allowed; no grant is implied by another."""
    found = {
        AclGrant(cluster, row.role.kind, pattern, operation)
        for row, cluster, patterns in resources.required(*components)
        for pattern in patterns
        for operation in row.operations
    }
    return sorted(each for each in found if not any(implies(g, each) for g in found - {each}))
