"""Earlier audits whose lost or overdue records may have arrived since (pure)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.audit.audit_scope import UnitScope


def with_earlier(scope: UnitScope, stored: Iterable[UnitScope]) -> UnitScope:
    """*scope* with *stored*, and with what those have replaced.

    Of two audits between which nothing arrived, the later one decides about all records of both,
    if its window contains the other's.
    """
    known = [replace(each, earlier=()) for audit in stored for each in (audit, *audit.earlier)]
    kept: list[UnitScope] = []
    for each in sorted(known, key=lambda one: one.taken_at, reverse=True):
        if not any(_covers(later, each) for later in kept):
            kept.append(each)
    return replace(scope, earlier=tuple(kept))


def _covers(later: UnitScope, one: UnitScope) -> bool:
    return (
        later.window.start <= one.window.start
        and one.window.end <= later.window.end
        and later.max_pending <= one.max_pending
        and _target_ends(later) == _target_ends(one)
        and [each.flow for each in later.flows] == [each.flow for each in one.flows]
    )


def _target_ends(scope: UnitScope) -> dict[int, int]:
    return {each.partition: each.end for each in scope.partitions}
