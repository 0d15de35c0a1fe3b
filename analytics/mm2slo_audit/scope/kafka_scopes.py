"""Everything that a run may judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_audit.scope.copy_map import CopyMap
    from mm2slo_audit.scope.scope_bounds import CopyKey
    from mm2slo_core.audit.audit_record import ArrivalPoll
    from mm2slo_core.audit.audit_scope import NotAudited, UnitScope
    from mm2slo_kafka.partition_offsets import Isolation


@dataclass(frozen=True, slots=True)
class Isolations:
    """At which level both sides of a unit are read; of the sources one per flow."""

    sources: tuple[Isolation, ...]
    target: Isolation


@dataclass(frozen=True, slots=True)
class KafkaScopes:
    """Scopes, topics without a verdict, arrival brackets. A scope's `index` is its place here."""

    scopes: tuple[UnitScope, ...]
    not_audited: tuple[NotAudited, ...] = ()
    polls: tuple[ArrivalPoll, ...] = ()
    isolations: tuple[Isolations, ...] = ()
    """Of each scope."""
    copies: tuple[Mapping[CopyKey, CopyMap], ...] = field(default=(), repr=False)
    """Of each scope: what its bounds rest on, should retention move them."""

    @property
    def planned(self) -> int:
        """Offsets that will be read on both sides: the records at most."""
        return sum(scope.planned for scope in self.scopes)
