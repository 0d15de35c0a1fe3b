"""Records with equal identity, paired in order: a multiset difference."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.audit.audit_scope import Comparison
from mm2slo_core.audit.reference.cut_buckets import Buckets
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.audit.audit_record import AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope

Pair = tuple["AuditRecord", "AuditRecord"]
"""A source record and a target record."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Paired records, and the unpaired ones of either side, inside and outside the window."""

    matched: tuple[Pair, ...]
    missing: tuple[AuditRecord, ...]
    duplicates: tuple[Pair, ...]
    """The first source record of the group, and the duplicate."""
    unexplained: tuple[AuditRecord, ...]
    """Target records without a source record."""
    deleted: tuple[AuditRecord, ...] = ()
    """Source tombstones whose key the target has removed: matched without a copy."""


def pair(records: Iterable[AuditRecord], scope: UnitScope) -> Pairing:
    """Pair the k-th source record of each group with its k-th target record.

    If cuts distinguish equal records, each bucket is paired separately, see `cut_buckets`.
    """
    buckets = Buckets(scope) if scope.bucketed else None
    groups: defaultdict[tuple[int | None, ...], tuple[list[AuditRecord], list[AuditRecord]]]
    groups = defaultdict(lambda: ([], []))
    for record in sorted(records, key=place):
        source, target = groups[_identity(record, scope)]
        (source if record.side is Side.SOURCE else target).append(record)
    matched: list[Pair] = []
    missing: list[AuditRecord] = []
    duplicates: list[Pair] = []
    unexplained: list[AuditRecord] = []
    for source, target in groups.values():
        if buckets is None:
            matched.extend(zip(source, target, strict=False))
            absent, surplus = source[len(target) :], target[len(source) :]
        else:
            pairs, absent, surplus = buckets.pair(source, target)
            matched.extend(pairs)
        missing.extend(absent)
        if source:
            duplicates.extend((source[0], copy) for copy in surplus)
        else:
            unexplained.extend(surplus)
    return Pairing(tuple(matched), tuple(missing), tuple(duplicates), tuple(unexplained))


def place(record: AuditRecord) -> tuple[int, int, int]:
    """Return the sort key of records of one side; the flow of target records is 0."""
    return record.flow, record.partition, record.offset


def comparable_partition(record: AuditRecord, scope: UnitScope) -> int | None:
    """Return the partition, if both sides have the same partitions."""
    return record.partition if scope.comparison is Comparison.RECORDS else None


def _identity(record: AuditRecord, scope: UnitScope) -> tuple[int | None, ...]:
    time = record.timestamp if scope.identity.timestamp else None
    return comparable_partition(record, scope), time, record.fingerprint
