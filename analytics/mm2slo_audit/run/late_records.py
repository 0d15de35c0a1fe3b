"""Late records: an earlier run missed their copy, and this run found it (pure)."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.audit.audit_scope import Comparison
from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.audit.unit_outcome import Evidence
from mm2slo_core.timeline_record import Side

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.audit.audit_scope import SourcePartition
    from mm2slo_core.audit.record_sample import Sample
    from mm2slo_core.audit.unit_outcome import PartitionOutcome, UnitOutcome

# Verdicts with evidence on records without a matching copy.
_MISSING = (Verdict.OVERDUE, Verdict.LOST, Verdict.MOVED, Verdict.ALTERED)


class MissedRecord(NamedTuple):
    """A source record that was lost, overdue or late in an earlier run; flow by index."""

    flow: int
    partition: int
    offset: int
    timestamp: int
    fingerprint: int


def reclassify_late(
    outcome: UnitOutcome, missed: Iterable[MissedRecord], sample: Sample
) -> UnitOutcome:
    """*outcome* with those *missed* records that now have a copy as late instead of matched.

    A record is not reclassified if this run did not read it (gone from the source, not in the
    sample, outside the window) or if it may still be missing: it may be pending, it is beyond the
    end of capped evidence, or only the newest record of its key is compared.
    """
    if outcome.scope.comparison is Comparison.LATEST:
        return outcome
    found = [each for each in sorted(set(missed)) if _was_read(outcome, each, sample)]
    absent = _absent(outcome)
    late = [each for each in found if not absent.may_hold(each)]
    if not late:
        return outcome
    by_partition = Counter((each.flow, each.partition) for each in late)
    return replace(
        outcome,
        partitions=tuple(
            _moved_to_late(part, by_partition[part.flow, part.partition])
            if part.flow is not None
            else part
            for part in outcome.partitions
        ),
        evidence=(*outcome.evidence, *map(_evidence, late)),
    )


class _Absent:
    """Records missing in this run, as far as its evidence is complete."""

    def __init__(self, places: set[tuple[int, int, int]], reach: Mapping[Verdict, _Place]) -> None:
        self._places = places
        self._reach = reach

    def may_hold(self, record: MissedRecord) -> bool:
        """Whether *record* is missing, or may be beyond the end of the evidence."""
        place = (record.flow, record.partition, record.offset)
        return place in self._places or any(place > end for end in self._reach.values())


_Place = tuple[int, int, int]


def _absent(outcome: UnitOutcome) -> _Absent:
    places: set[_Place] = set()
    listed: defaultdict[Verdict, list[_Place]] = defaultdict(list)
    for each in outcome.evidence:
        if each.verdict in _MISSING and each.side is Side.SOURCE:
            place = (each.flow, each.partition, each.offset)
            places.add(place)
            listed[each.verdict].append(place)
    counts = outcome.counts
    # Evidence is sorted before it is capped, so it is complete up to its last record.
    reach = {
        verdict: max(listed[verdict], default=(-1, -1, -1))
        for verdict in _MISSING
        if counts.get(verdict, 0) > len(listed[verdict])
    }
    return _Absent(places, reach)


def _was_read(outcome: UnitOutcome, record: MissedRecord, sample: Sample) -> bool:
    scope = outcome.scope
    if not scope.window.contains(record.timestamp) or record.flow >= len(scope.flows):
        return False
    if not sample.keeps_record(record.fingerprint):
        return False
    # Pending records have no evidence.
    young = scope.taken_at - record.timestamp <= scope.max_pending
    return any(
        part.partition == record.partition
        and max(part.log_start, part.read_from, part.known_from) <= record.offset < part.end
        and not (young and _is_beyond(part, record))
        for part in scope.flows[record.flow].partitions
    )


def _is_beyond(part: SourcePartition, record: MissedRecord) -> bool:
    """Whether *record* is beyond the position."""
    return part.next_offset is None or record.offset >= part.next_offset


def _moved_to_late(part: PartitionOutcome, late: int) -> PartitionOutcome:
    late = min(late, part.counts.get(Verdict.MATCHED, 0))
    if not late:
        return part
    counts = Counter(part.counts)
    counts[Verdict.MATCHED] -= late
    counts[Verdict.LATE] += late
    return replace(part, counts=+counts)


def _evidence(record: MissedRecord) -> Evidence:
    return Evidence(
        Verdict.LATE,
        Side.SOURCE,
        record.flow,
        record.partition,
        record.offset,
        record.timestamp,
        record.fingerprint,
        None,
    )
