"""Compares the permissions that a flow needs with those that its clusters report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.connection_checks.acl_patterns import ALL_NAMES
from mm2slo_core.connection_checks.check_result import CheckResult, listed
from mm2slo_core.connection_checks.required_permissions import Operation, ResourceKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.connection_checks.flow_resources import FlowResources
    from mm2slo_core.connection_checks.required_permissions import RequiredPermission


class Access(NamedTuple):
    """An operation on one resource."""

    kind: ResourceKind
    name: str
    operation: Operation

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name}"


Answers = Mapping[Access, bool]
"""Whether the user is allowed to; absent where the cluster does not report it."""


def required_access(
    resources: FlowResources, visible: Mapping[tuple[str, Role], Collection[str]]
) -> Iterator[tuple[RequiredPermission, str, list[Access]]]:
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
        yield row, cluster, [Access(kind, n, op) for op in row.operations for n in sorted(names)]


def permission_result(
    where: str, row: RequiredPermission, cluster: str, needed: list[Access], answers: Answers
) -> CheckResult:
    denied = [str(each) for each in needed if answers.get(each) is False]
    if denied:
        finding = f"{row.component} is denied {listed(denied)}: {row.without}".replace("`", "")
        remedy = f"grant it to this user on cluster {cluster}"
        return CheckResult(where, "permission", "fix", finding, remedy)
    names = listed(sorted({each.name for each in needed})) or f"({row.role.title})"
    what = f"{row.component}: {', '.join(row.operations)} on {row.role.kind} {names} of {cluster}"
    if not needed:
        return CheckResult(where, "permission", "unknown", f"{what}: none is visible")
    if unknown := [str(each) for each in needed if each not in answers]:
        finding = f"{what}: the cluster does not report {listed(unknown)}"
        return CheckResult(where, "permission", "unknown", finding)
    return CheckResult(where, "permission", "ok", what)
