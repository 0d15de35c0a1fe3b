"""Records paired with their copies in plain Python, and verdicts on those without one.

`pair` pairs records with equal identity in order: a multiset difference. Without timestamps,
buckets pair them. Cuts divide both sides of a partition into buckets, and a copy is in the bucket
of its record. Neighbouring buckets are tried for the rest, because copies may overtake each other
across a cut. A group is within one partition.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mm2slo_core.audit.audit_scope import AuditRecord, Comparison, SourcePartition, UnitScope
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.records.timeline_record import Side

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
        source, target = groups[identity(record, scope)]
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


def identity(record: AuditRecord, scope: UnitScope) -> tuple[int | None, ...]:
    """Return what equal records have in common: partition, timestamp and fingerprint."""
    time = record.timestamp if scope.identity.timestamp else None
    return comparable_partition(record, scope), time, record.fingerprint


_ROUNDS: Final[tuple[Callable[[int], int], ...]] = (
    lambda bucket: bucket,
    lambda bucket: bucket >> 1,
    lambda bucket: (bucket + 1) >> 1,
)
"""The bucket numbers that paired records must have in common, by round."""


class Buckets:
    """The buckets of one unit."""

    def __init__(self, scope: UnitScope) -> None:
        (flow,) = scope.flows
        self._edges = {
            (side, source.partition): [cut[side is Side.TARGET] for cut in source.cuts]
            for source in flow.partitions
            for side in Side
        }

    def of(self, record: AuditRecord) -> int:
        """Return the bucket of *record*, from 0."""
        return bisect_right(self._edges.get((record.side, record.partition), ()), record.offset)

    def pair(
        self, source: Sequence[AuditRecord], target: Sequence[AuditRecord]
    ) -> tuple[list[tuple[AuditRecord, AuditRecord]], list[AuditRecord], list[AuditRecord]]:
        """Return the pairs of one group, and the unpaired records of either side, in order."""
        left, right = list(source), list(target)
        for cell in _ROUNDS:
            cells: defaultdict[int, tuple[list[AuditRecord], list[AuditRecord]]]
            cells = defaultdict(lambda: ([], []))
            for record in left:
                cells[cell(self.of(record))][0].append(record)
            for copy in right:
                cells[cell(self.of(copy))][1].append(copy)
            left, right = [], []
            for number in sorted(cells):
                records, copies = cells[number]
                left += records[len(copies) :]
                right += copies[len(records) :]
        # Equal records pair in order, whichever round selected them.
        of_source, of_target = _without(source, left), _without(target, right)
        return list(zip(of_source, of_target, strict=True)), left, right


def _without(records: Sequence[AuditRecord], left: Sequence[AuditRecord]) -> list[AuditRecord]:
    over = {each.offset for each in left}
    return [each for each in records if each.offset not in over]


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


def is_late(pair: Pair, scope: UnitScope) -> bool:
    """Return whether an audit in `scope.earlier` judged the record of *pair* lost or overdue."""
    flow = scope.flows[pair[0].flow].flow
    for earlier in scope.earlier:
        partitions = {
            each.partition: each
            for of_flow in earlier.flows
            if of_flow.flow == flow
            for each in of_flow.partitions
        }
        source = partitions.get(pair[0].partition)
        if source is not None and _was_missing(pair, source, earlier):
            return True
    return False


def _was_missing(pair: Pair, source: SourcePartition, earlier: UnitScope) -> bool:
    record, copy = pair
    ends = {each.partition: each.end for each in earlier.partitions}
    due = source.next_offset is not None and record.offset < source.next_offset
    return (
        earlier.window.contains(record.timestamp)
        and source.known_from <= record.offset < source.end
        and copy.offset >= ends.get(copy.partition, 0)
        and (due or earlier.taken_at - record.timestamp > earlier.max_pending)
    )


def find_unmasked(records: Iterable[AuditRecord], scope: UnitScope) -> list[Pair]:
    """Return the source records with an unchanged part, each with a copy that has it.

    In any partition, so that moved and additional copies count as well. Of several copies it is the
    first by partition and offset.
    """
    groups: defaultdict[tuple[int | None, ...], tuple[list[AuditRecord], list[AuditRecord]]]
    groups = defaultdict(lambda: ([], []))
    for record in sorted(records, key=place):
        time = record.timestamp if scope.identity.timestamp else None
        for content in record.masked:
            source, target = groups[time, record.fingerprint, content]
            (source if record.side is Side.SOURCE else target).append(record)
    pairs = [pair for of_both in groups.values() for pair in zip(*of_both, strict=False)]
    found: dict[tuple[int, int, int], Pair] = {}
    for pair in sorted(pairs, key=lambda each: place(each[1])):
        found.setdefault(place(pair[0]), pair)
    return list(found.values())
