"""Verdicts on source records without a matching copy."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.audit.audit_scope import Comparison
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.reference.record_groups import comparable_partition, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mm2slo_core.audit.audit_record import AuditRecord
    from mm2slo_core.audit.audit_scope import SourcePartition, UnitScope
    from mm2slo_core.audit.reference.record_groups import Pair


class MissingVerdict(NamedTuple):
    """The verdict on a missing record, and its counterpart if one was found."""

    record: AuditRecord
    verdict: Verdict
    counterpart: AuditRecord | None


class MissingJudged(NamedTuple):
    """The verdicts on missing records, and on the target records that are left."""

    verdicts: list[MissingVerdict]
    duplicates: list[Pair]
    """Copies in another partition: the first source record of equal identity, and the copy."""
    unexplained: list[AuditRecord]


def missing_verdicts(
    missing: Sequence[AuditRecord],
    unexplained: Sequence[AuditRecord],
    sources: Iterable[AuditRecord],
    scope: UnitScope,
) -> MissingJudged:
    """Judge all *missing* records, by the *unexplained* ones on the target.

    *sources* are all source records, missing or not: unexplained copies of them are duplicates.
    """
    found: list[MissingVerdict] = []
    duplicates: list[Pair] = []
    moved_trait = _moved_trait(scope)
    first = {moved_trait(record): record for record in sorted(sources, key=place, reverse=True)}
    first.pop(None, None)
    for verdict, trait in (
        (Verdict.MOVED, moved_trait),
        (Verdict.ALTERED, _altered_trait(scope)),
    ):
        pairs = _paired(missing, unexplained, trait)
        found.extend(MissingVerdict(record, verdict, copy) for record, copy in pairs)
        settled = {id(each) for pair in pairs for each in pair}
        missing = [each for each in missing if id(each) not in settled]
        unexplained = [each for each in unexplained if id(each) not in settled]
        if verdict is Verdict.MOVED:
            duplicates = [
                (first[of], copy)
                for copy in unexplained
                if (of := trait(copy)) in first and scope.window.contains(copy.timestamp)
            ]
            again = {id(copy) for _, copy in duplicates}
            unexplained = [each for each in unexplained if id(each) not in again]
    partitions = {
        (flow, each.partition): each
        for flow, of_flow in enumerate(scope.flows)
        for each in of_flow.partitions
    }
    for record in missing:
        source = partitions[record.flow, record.partition]
        found.append(MissingVerdict(record, _open_verdict(record, source, scope), None))
    return MissingJudged(found, duplicates, list(unexplained))


def _open_verdict(record: AuditRecord, source: SourcePartition, scope: UnitScope) -> Verdict:
    if record.offset < source.known_from:
        return Verdict.UNAUDITABLE
    if source.next_offset is not None and record.offset < source.next_offset:
        return Verdict.LOST
    overdue = scope.taken_at - record.timestamp > scope.max_pending
    return Verdict.OVERDUE if overdue else Verdict.PENDING


_Trait = tuple[object, ...]


def _moved_trait(scope: UnitScope) -> Callable[[AuditRecord], _Trait | None]:
    """Match by identity in any partition."""

    def trait(record: AuditRecord) -> _Trait | None:
        if scope.comparison is not Comparison.RECORDS:
            return None
        return record.timestamp if scope.identity.timestamp else None, record.fingerprint

    return trait


def _altered_trait(scope: UnitScope) -> Callable[[AuditRecord], _Trait | None]:
    """Match by timestamp and key or, without a key, partition."""

    def trait(record: AuditRecord) -> _Trait | None:
        if not scope.identity.timestamp:
            return None
        if record.key_hash is None:
            return record.timestamp, None, comparable_partition(record, scope)
        return record.timestamp, record.key_hash

    return trait


def _paired(
    missing: Iterable[AuditRecord],
    unexplained: Iterable[AuditRecord],
    trait: Callable[[AuditRecord], _Trait | None],
) -> list[tuple[AuditRecord, AuditRecord]]:
    candidates: defaultdict[_Trait | None, list[AuditRecord]] = defaultdict(list)
    for copy in sorted(unexplained, key=place, reverse=True):
        candidates[trait(copy)].append(copy)
    candidates.pop(None, None)
    return [
        (record, copies.pop())
        for record in sorted(missing, key=place)
        if (copies := candidates.get(trait(record)))
    ]
