"""The scopes of a run and the data to read them."""

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
    """Isolation levels of a unit; sources per flow."""

    sources: tuple[Isolation, ...]
    target: Isolation


@dataclass(frozen=True, slots=True)
class KafkaScopes:
    """Scopes, topics that are not audited, arrival polls. A scope's `index` is its place here."""

    scopes: tuple[UnitScope, ...]
    not_audited: tuple[NotAudited, ...] = ()
    polls: tuple[ArrivalPoll, ...] = ()
    isolations: tuple[Isolations, ...] = ()
    """Per scope."""
    copies: tuple[Mapping[CopyKey, CopyMap], ...] = field(default=(), repr=False)
    """Per scope: data to recompute its bounds when retention moves log starts."""
    notes: tuple[str, ...] = ()
    """Sentences on running connectors that differ from the configuration."""

    @property
    def planned(self) -> int:
        """Offsets to read on both sides; an upper bound of the records."""
        return sum(scope.planned for scope in self.scopes)
