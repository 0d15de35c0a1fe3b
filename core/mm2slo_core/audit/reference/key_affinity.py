"""Affinity and order of the records of each key."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from mm2slo_core.audit.audit_scope import Comparison
from mm2slo_core.audit.key_cells import pool_key_cells
from mm2slo_core.audit.reference.copy_order import descents
from mm2slo_core.audit.unit_outcome import AffinityOutcome, KeyCell
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.audit.audit_record import AuditRecord
    from mm2slo_core.audit.audit_scope import UnitScope
    from mm2slo_core.audit.reference.record_groups import Pair


def affinity(
    records: Iterable[AuditRecord],
    matched: Iterable[Pair],
    scope: UnitScope,
    cap: int | None,
    *,
    census: bool,
) -> AffinityOutcome:
    """Judge the key stratum; *matched* are its pairs, empty if order is not judged."""
    sources: defaultdict[int, Counter[int]] = defaultdict(Counter)
    targets: defaultdict[int, Counter[int]] = defaultdict(Counter)
    auditable_from = {each.partition: each.auditable_from for each in scope.partitions}
    for record in records:
        if record.key_hash is None or not scope.window.contains(record.timestamp):
            continue
        if record.side is Side.SOURCE:
            sources[record.key_hash][record.partition] += 1
        elif record.offset >= auditable_from.get(record.partition, 0):
            targets[record.key_hash][record.partition] += 1
    keys = sources.keys() & targets.keys()
    strays = {key: _strays(sources[key], targets[key], scope) for key in keys}
    split = {key for key, records_moved in strays.items() if records_moved}
    overtook = Counter(
        key
        for source, _ in descents((each for each in matched if each[0].key_hash in keys), _lane)
        if scope.window.contains(source.timestamp) and (key := source.key_hash) is not None
    )
    found = AffinityOutcome(
        keys=len(keys),
        keys_split=len(split),
        keys_disordered=len(overtook),
        records_moved=sum(strays.values()),
        broken_keys=tuple(sorted(split | overtook.keys())[:cap]),
        cells=pool_key_cells(
            KeyCell(1, sources[key].total(), targets[key].total(), strays[key], overtook[key])
            for key in keys
        ),
    )
    return replace(found, cells=(found.total,)) if census and keys else found


def _strays(source: Counter[int], target: Counter[int], scope: UnitScope) -> int:
    """Count the records of a key in partitions where it does not belong."""
    if scope.comparison is Comparison.RECORDS:
        return sum(count for partition, count in target.items() if partition not in source)
    fullest = sorted(target.values(), reverse=True)
    return sum(fullest[len(source) :])


def _lane(pair: Pair) -> tuple[int, ...]:
    source, copy = pair
    # Pairs without a key were left out, so 0 never replaces a missing key.
    return source.key_hash or 0, source.flow, source.partition, copy.partition
