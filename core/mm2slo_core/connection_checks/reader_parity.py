"""Whether who may read a topic and group on the source may read both on the target, by ACLs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.connection_checks.acl_patterns import AclPattern

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from mm2slo_core.connection_checks.required_permissions import ResourceKind


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
