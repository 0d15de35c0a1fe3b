"""Compares the permissions that a flow needs with those that its clusters report."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.connection_checks.acl_patterns import ALL_NAMES
from mm2slo_core.connection_checks.check_result import CheckResult, listed
from mm2slo_core.connection_checks.required_permissions import Operation, ResourceKind, Role

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.connection_checks.acl_patterns import AclPattern
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
VisibleNames = Mapping[tuple[str, Role], Collection[str]]
"""The existing replicated topics and groups, by cluster."""


def required_access(
    resources: FlowResources, visible: VisibleNames
) -> Iterator[tuple[RequiredPermission, str, tuple[Access, ...]]]:
    """Each permission of exporter and audit, the cluster, and the accesses that it consists of."""
    for row, cluster, patterns in resources.required("exporter", "audit"):
        names = {*visible.get((cluster, row.role), ()), *_named(row.role, patterns)}
        yield (
            row,
            cluster,
            tuple(
                Access(row.role.kind, name, op) for op in row.operations for name in sorted(names)
            ),
        )


def permission_result(
    where: str, row: RequiredPermission, cluster: str, needed: Collection[Access], answers: Answers
) -> CheckResult:
    denied = [str(each) for each in needed if answers.get(each) is False]
    open_questions = [str(each) for each in needed if each not in answers]
    if denied:
        finding = f"{row.component} is denied {listed(denied)}: {row.without}".replace("`", "")
        remedy = f"grant it to this user on cluster {cluster}"
        return CheckResult(where, "permission", "fix", finding, remedy)
    names = listed(sorted({each.name for each in needed})) or f"({row.role.title})"
    what = f"{row.component}: {', '.join(row.operations)} on {row.role.kind} {names} of {cluster}"
    if not needed:
        return CheckResult(where, "permission", "unknown", f"{what}: none is visible")
    if open_questions:
        finding = f"{what}: the cluster does not report {listed(open_questions)}"
        return CheckResult(where, "permission", "unknown", finding)
    return CheckResult(where, "permission", "ok", what)


def _named(role: Role, patterns: tuple[AclPattern, ...]) -> Iterator[str]:
    """Names that are checked whether they are visible or not."""
    for name, prefixed in patterns:
        if role is Role.SPARK_GROUPS:
            yield f"{name}mm2slo"  # Spark invents names; any name shows what the prefix allows
        elif not prefixed and name != ALL_NAMES:
            yield name
