"""Records that arrived with a part that the flow must change."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mm2slo_core.audit.reference.record_groups import place
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.audit.audit_record import AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.reference.record_groups import Pair


def find_unmasked(records: Iterable[AuditRecord], scope: UnitScope) -> list[Pair]:
    """Return the source records with an unchanged part, each with a copy that has it.

    In any partition, so that moved and additional copies count as well.
    """
    groups: defaultdict[tuple[int | None, ...], tuple[list[AuditRecord], list[AuditRecord]]]
    groups = defaultdict(lambda: ([], []))
    for record in sorted(records, key=place):
        time = record.timestamp if scope.identity.timestamp else None
        for part, content in enumerate(record.masked):
            if content is not None:
                source, target = groups[part, time, record.fingerprint, content]
                (source if record.side is Side.SOURCE else target).append(record)
    found: dict[tuple[int, int, int], Pair] = {}
    for _, (source, target) in sorted(groups.items(), key=lambda group: group[0][0] or 0):
        for pair in zip(source, target, strict=False):
            found.setdefault(place(pair[0]), pair)
    return list(found.values())
