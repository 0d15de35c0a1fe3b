"""Comparison of compacted topics by the newest record of each key."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from mm2slo_core.audit.reference.record_groups import Pair, Pairing, place
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.audit.audit_record import AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope


def pair_latest(records: Iterable[AuditRecord], scope: UnitScope) -> Pairing:
    """Compare the newest record of each key; finds no duplicates."""
    sources: defaultdict[int, list[AuditRecord]] = defaultdict(list)
    copies: dict[int, AuditRecord] = {}
    for record in sorted(_newest(records), key=place):
        if record.key_hash is None:
            continue
        if record.side is Side.SOURCE:
            sources[record.key_hash].append(record)
        else:
            copies[record.key_hash] = record
    matched: list[Pair] = []
    missing: list[AuditRecord] = []
    unexplained: list[AuditRecord] = []
    deleted: list[AuditRecord] = []
    for key in sources.keys() | copies.keys():
        written, copy = sources.get(key, []), copies.get(key)
        if copy is None:
            # Also if another flow deleted the key later.
            gone = any(record.tombstone and not _kept(record, scope) for record in written)
            (deleted if gone else missing).extend(written)
        elif any(_equal(record, copy, scope) for record in written):
            # A later record of another flow hides this flow's copy.
            matched.extend((record, copy) for record in written)
        else:
            missing.extend(written)
            if _unexplained(copy, written, scope):
                unexplained.append(copy)
    return Pairing(tuple(matched), tuple(missing), (), tuple(unexplained), tuple(deleted))


def _newest(records: Iterable[AuditRecord]) -> Iterable[AuditRecord]:
    survivors: dict[tuple[object, ...], AuditRecord] = {}
    for record in sorted(records, key=place):
        survivors[record.side, record.flow, record.partition, record.key_hash] = record
    newest: dict[tuple[object, ...], AuditRecord] = {}
    for record in sorted(survivors.values(), key=lambda each: (each.timestamp, each.partition)):
        newest[record.side, record.flow, record.key_hash] = record
    return newest.values()


def _equal(record: AuditRecord, copy: AuditRecord, scope: UnitScope) -> bool:
    same_time = record.timestamp == copy.timestamp or not scope.identity.timestamp
    return same_time and record.fingerprint == copy.fingerprint


def _kept(tombstone: AuditRecord, scope: UnitScope) -> bool:
    """Return whether the target must still have the tombstone."""
    return 0 <= scope.taken_at - tombstone.timestamp < scope.tombstones_kept


def _unexplained(copy: AuditRecord, written: list[AuditRecord], scope: UnitScope) -> bool:
    if not written:
        return not copy.tombstone
    newest = max(record.timestamp for record in written)
    return scope.identity.timestamp and copy.timestamp >= newest
