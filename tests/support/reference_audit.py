"""The audit in plain Python, as the reference for the Spark implementation: `judge`.

Definitions beyond those of `record_verdict`:

- A record is *judged* if its own timestamp is in the window; others match, but do not count. A
  surplus target record is judged by its own timestamp.
- A group has equal partition (except for KEYS), timestamp (if the identity covers it) and
  fingerprint. Its source records are sorted by (flow, partition, offset), its target records by
  (partition, offset); the k-th matches the k-th. Moved and altered records pair in the same order.
- Without timestamps, cuts divide both sides of a partition into buckets (`UnitScope.bucketed`). A
  group is then paired in three rounds, each with the records left by the previous ones: within each
  bucket, within buckets 0-1, 2-3, ..., and within buckets 1-2, 3-4, ... Of all records that the
  rounds paired, the k-th matches the k-th.
- Copies in other partitions, those after the ones paired as MOVED, are duplicates of the first
  source record of equal identity, if they are judged.
- ALTERED needs timestamps: without them in the identity, the record is lost and its copy extra. For
  KEYS, a record without a key is altered by timestamp alone.
- Duplicates are counted, and listed in evidence, by flow and partition of the first source record
  of their group (the partition in evidence is the target's); extra and unauditable target records
  have no flow (in evidence: flow 0).
- LATE: of a matched pair, an earlier audit (`UnitScope.earlier`) would have judged the record lost
  or overdue, and its copy is beyond the target's end of that time. Not for LATEST.
- UNMASKED: a target record of equal identity, in any partition, has a part of `must_change` with
  equal content. Of equal parts, the k-th source record belongs to the k-th target record.
- Copied again (`copied_again`) are of equal records of a partition as many as there are judged
  duplicates, at most all. Copies in other partitions belong to the partition of the first source
  record, and equal records of all partitions count there.
- A run of duplicates may extend beyond the window when deciding whether it is a replay. Its event
  covers the judged ones: from the first offset to the last + 1, and their number.
- Order is judged (`order_judged`) if all flows have positions, except for LATEST. OUT_OF_ORDER is
  counted only for RECORDS; the order of keys is also judged for KEYS.
- LATEST: of each side the last record by offset of each (flow,) partition and key, of these per key
  (and flow) the newest by (timestamp, partition). A source record is matched if it, or the newest
  of another flow, equals the newest of the target; or if it, or the newest of another flow, is a
  tombstone, and the target has no record of that key and may have cleaned it (`tombstones_kept`). A
  target record is unexplained if it equals none and the source has no record of that key (and it is
  no tombstone), or none newer (by timestamp, if the identity covers it). Only the key stratum is
  compared. Source records without a key (in a sample those of the record stratum) are unauditable:
  Kafka's cleaner removes such records, on either side at any time.
- Affinity: a key counts if it has judged records on both sides, on the target from
  `auditable_from` on. It is split if it is in a target partition where it is not on the source
  (RECORDS), or in more partitions than on the source (KEYS, LATEST). `records_moved` are its target
  records in such partitions; for KEYS and LATEST those outside its fullest partitions, as many as
  on the source. A key is disordered if, of its matched records of one flow, source partition and
  target partition, a judged one precedes an earlier one on the target.
- Latency is that of judged matched records. A target partition has one timeline, whichever flow
  wrote it; of polls with equal ends the earlier counts. `total_lower_ms` adds lower bounds that are
  negative or unknown as 0.
- Evidence: all verdicts except matched, pending and unauditable; the source offset except for
  surplus; with the place of the copy if late, moved, altered or out of order; sorted by verdict
  (in enum order), flow, partition, offset, then capped per verdict.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby
from typing import NamedTuple

from reference_pairing import (
    Pair,
    Pairing,
    find_unmasked,
    identity,
    is_late,
    missing_verdicts,
    pair,
    pair_latest,
    place,
)

from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    AuditRecord,
    Comparison,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Sample
from mm2slo_core.audit.unit_outcome import (
    SURPLUS,
    UNREMARKABLE,
    AffinityOutcome,
    Evidence,
    KeyCell,
    LatencyCells,
    PartitionOutcome,
    ReplayEvent,
    UnitOutcome,
    Verdict,
    latency_bucket,
    pool_key_cells,
)
from mm2slo_core.records.timeline_record import Side

_OPEN = {Verdict.PENDING, Verdict.OVERDUE}


def judge(
    records: Sequence[AuditRecord],
    polls: Sequence[ArrivalPoll],
    scope: UnitScope,
    sample: Sample,
    *,
    evidence_cap: int | None = None,
) -> UnitOutcome:
    """Judge the unit of *scope*; *records* and *polls* may include those of other units.

    Records have their sample strata; *sample* is only used for whether it is a census.
    *evidence_cap* limits evidence per verdict, and broken keys. Raises KeyError for a source
    partition that is not in the scope.
    """
    of_unit = [each for each in records if each.topic == scope.index]
    latest = scope.comparison is Comparison.LATEST
    keyed = [each for each in of_unit if each.in_keys]
    if latest:
        compared = [
            each for each in of_unit if each.in_keys or (each.key_hash is None and each.in_records)
        ]
    else:
        compared = [each for each in of_unit if each.in_records]
    pairing = pair_latest(compared, scope) if latest else pair(compared, scope)
    ledger = _Ledger(scope)
    ledger.add_sources(compared)
    ledger.add_pairing(pairing, compared, census=sample.census)
    order_judged = not latest and all(flow.has_positions for flow in scope.flows)
    if order_judged and scope.comparison is Comparison.RECORDS:
        ledger.add_disorder(pairing.matched)
    ledger.add_unmasked(find_unmasked(compared, scope))
    arrivals = Arrivals((each for each in polls if each.topic == scope.index), scope)
    in_order = pair(keyed, scope).matched if order_judged else ()
    return ledger.outcome(
        arrivals,
        affinity(keyed, in_order, scope, evidence_cap, census=sample.census),
        order_judged=order_judged,
        evidence_cap=evidence_cap,
    )


_Cell = tuple[int | None, int]
"""Flow, or None for target records of no flow, and partition."""


class _Ledger:
    """Collects verdicts by partition."""

    def __init__(self, scope: UnitScope) -> None:
        self._scope = scope
        self._is_in_window = scope.window.contains
        self._counts: defaultdict[_Cell, Counter[Verdict]] = defaultdict(Counter)
        self._bytes: Counter[_Cell] = Counter()
        self._matched: defaultdict[_Cell, list[Pair]] = defaultdict(list)
        self._evidence: list[Evidence] = []
        self._copied_again: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        """Of each duplicate, by partition and fingerprint: the number of equal source records."""
        self._replays: set[ReplayEvent] = set()
        self._open: list[int] = []
        for flow, of_flow in enumerate(scope.flows):
            for source in of_flow.partitions:
                self._counts[flow, source.partition] += Counter({Verdict.EXPIRED: source.expired})

    def add_sources(self, records: Iterable[AuditRecord]) -> None:
        for record in records:
            if record.side is Side.SOURCE and self._is_in_window(record.timestamp):
                self._bytes[record.flow, record.partition] += record.size

    def add_pairing(
        self, pairing: Pairing, records: Sequence[AuditRecord], *, census: bool
    ) -> None:
        latest = self._scope.comparison is Comparison.LATEST
        for source, copy in pairing.matched:
            if self._is_in_window(source.timestamp):
                self._matched[source.flow, source.partition].append((source, copy))
                if latest or not is_late((source, copy), self._scope):
                    self._add(Verdict.MATCHED, source)
                else:
                    self._add(Verdict.LATE, source, counterpart=copy)
        for source in records if latest else ():
            if source.side is Side.SOURCE and source.key_hash is None:
                self._add(Verdict.UNAUDITABLE, source)
        for source in pairing.deleted:
            self._add(Verdict.MATCHED, source)
        sources = [each for each in records if each.side is Side.SOURCE]
        equal_records = EqualRecords(sources, self._scope)
        missing = missing_verdicts(pairing.missing, pairing.unexplained, sources, self._scope)
        for source, verdict, counterpart in missing.verdicts:
            self._add(verdict, source, counterpart=counterpart)
        duplicates = (*pairing.duplicates, *missing.duplicates)
        events = find_replays(records, duplicates, self._scope.window) if census else {}
        self._replays.update(events.values())
        for owner, copy in duplicates:
            event = events.get((copy.partition, copy.offset))
            verdict = Verdict.DUPLICATE if event is None else Verdict.REPLAY
            block = None if event is None else event.start
            if self._is_in_window(copy.timestamp):
                number = equal_records(owner, copy)
                self._copied_again[owner.partition, copy.fingerprint].append(number)
            self._add(verdict, copy, cell=(owner.flow, owner.partition), block=block)
        known = {each.partition: each.auditable_from for each in self._scope.partitions}
        for copy in missing.unexplained:
            auditable = copy.offset >= known.get(copy.partition, 0)
            verdict = Verdict.EXTRA if auditable else Verdict.UNAUDITABLE
            self._add(verdict, copy, cell=(None, copy.partition))

    def add_disorder(self, matched: Iterable[Pair]) -> None:
        for source, copy in descents(matched, lambda each: (each[0].flow, each[0].partition)):
            self._add(Verdict.OUT_OF_ORDER, source, counterpart=copy)

    def add_unmasked(self, pairs: Iterable[Pair]) -> None:
        for source, copy in pairs:
            self._add(Verdict.UNMASKED, source, counterpart=copy)

    def outcome(
        self,
        arrivals: Arrivals,
        of_keys: AffinityOutcome,
        *,
        order_judged: bool,
        evidence_cap: int | None,
    ) -> UnitOutcome:
        return UnitOutcome(
            scope=self._scope,
            partitions=tuple(self._partitions(arrivals)),
            affinity=of_keys,
            copied_again=sum(min(max(each), len(each)) for each in self._copied_again.values()),
            replays=tuple(sorted(self._replays, key=lambda each: (each.partition, each.start))),
            evidence=cap_evidence(self._evidence, evidence_cap),
            oldest_open=min(self._open, default=None),
            order_judged=order_judged,
        )

    def _partitions(self, arrivals: Arrivals) -> Iterator[PartitionOutcome]:
        cells = sorted(self._counts, key=lambda cell: (cell[0] is None, cell[0] or 0, cell[1]))
        for flow, partition in cells:
            found = latencies(self._matched[flow, partition], arrivals, self._scope)
            yield PartitionOutcome(
                flow=flow,
                partition=partition,
                counts=dict(self._counts[flow, partition]),
                source_bytes=self._bytes[flow, partition],
                end_to_end=found.end_to_end,
                transfer=found.transfer,
                without_bracket=found.without_bracket,
            )

    def _add(
        self,
        verdict: Verdict,
        record: AuditRecord,
        *,
        cell: _Cell | None = None,
        counterpart: AuditRecord | None = None,
        block: int | None = None,
    ) -> None:
        if not self._is_in_window(record.timestamp):
            return
        flow, partition = cell or (record.flow, record.partition)
        self._counts[flow, partition][verdict] += 1
        if verdict in _OPEN:
            self._open.append(record.timestamp)
        if verdict in UNREMARKABLE:
            return
        self._evidence.append(
            Evidence(
                verdict=verdict,
                side=Side.TARGET if verdict in SURPLUS else Side.SOURCE,
                flow=flow or 0,
                partition=record.partition,
                offset=record.offset,
                timestamp=record.timestamp,
                fingerprint=record.fingerprint,
                key_hash=record.key_hash,
                other_partition=None if counterpart is None else counterpart.partition,
                other_offset=None if counterpart is None else counterpart.offset,
                block=block,
            )
        )


class EqualRecords:
    """How many of *sources* are equal to a duplicate."""

    def __init__(self, sources: Iterable[AuditRecord], scope: UnitScope) -> None:
        groups = [identity(each, scope) for each in sources]
        self._scope = scope
        self._of_group = Counter(groups)
        self._anywhere = Counter(group[1:] for group in groups)

    def __call__(self, owner: AuditRecord, copy: AuditRecord) -> int:
        group = identity(owner, self._scope)
        if identity(copy, self._scope) == group:
            return self._of_group[group]
        return self._anywhere[group[1:]]


def find_replays(
    records: Iterable[AuditRecord], duplicates: Sequence[Pair], window: Window
) -> dict[tuple[int, int], ReplayEvent]:
    """Return the replay of each judged duplicate that is in one, by (partition, offset).

    A replay is a run of two or more duplicates without another target record in between.
    """
    copies = {(copy.partition, copy.offset) for _, copy in duplicates}
    targets = sorted(
        (each for each in records if each.side is Side.TARGET),
        key=lambda each: (each.partition, each.offset),
    )
    events: dict[tuple[int, int], ReplayEvent] = {}

    def run_of(record: AuditRecord) -> tuple[int, bool]:
        return record.partition, (record.partition, record.offset) in copies

    for (partition, surplus), run in groupby(targets, key=run_of):
        block = list(run)
        judged = [each.offset for each in block if window.contains(each.timestamp)]
        if surplus and len(block) > 1 and judged:
            event = ReplayEvent(partition, judged[0], judged[-1] + 1, len(judged))
            events.update(((partition, offset), event) for offset in judged)
    return events


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


def descents(matched: Iterable[Pair], lane: Callable[[Pair], tuple[int, ...]]) -> list[Pair]:
    """Return the pairs whose copy precedes that of an earlier one in the same *lane*."""
    lanes = sorted(matched, key=lambda pair: (lane(pair), place(pair[0])))
    found: list[Pair] = []
    for _, members in groupby(lanes, key=lane):
        pairs = list(members)
        furthest = accumulate((copy.offset for _, copy in pairs), max)
        found += [
            pair for pair, offset in zip(pairs, furthest, strict=True) if pair[1].offset < offset
        ]
    return found


class Arrival(NamedTuple):
    """A record arrived within [earliest, latest], epoch ms; earliest None: no previous poll."""

    earliest: int | None
    latest: int


class Latencies(NamedTuple):
    """The latencies of one source partition."""

    end_to_end: LatencyCells
    transfer: LatencyCells
    without_bracket: int


class Arrivals:
    """Arrival brackets from the polls of a unit."""

    def __init__(self, polls: Iterable[ArrivalPoll], scope: UnitScope) -> None:
        self._scope = scope
        self._polls: defaultdict[tuple[Side, int, int], list[ArrivalPoll]] = defaultdict(list)
        for poll in sorted(polls, key=lambda each: (each.end, each.latest)):
            flow = poll.flow if poll.side is Side.SOURCE else 0
            self._polls[poll.side, flow, poll.partition].append(poll)

    def of(self, record: AuditRecord) -> Arrival | None:
        """Return the bracket of the first poll whose end is beyond *record*, or None."""
        if self._has_append_time(record):
            return Arrival(record.timestamp, record.timestamp)
        polls = self._polls[record.side, record.flow, record.partition]
        at = bisect_right(polls, record.offset, key=lambda poll: poll.end)
        return Arrival(polls[at].earliest, polls[at].latest) if at < len(polls) else None

    def _has_append_time(self, record: AuditRecord) -> bool:
        scope = self._scope
        target = record.side is Side.TARGET
        time = scope.target_time if target else scope.flows[record.flow].source_time
        return time is TimestampType.LOG_APPEND


def latencies(matched: Iterable[Pair], arrivals: Arrivals, scope: UnitScope) -> Latencies:
    """Measure end to end from the record's timestamp, transfer from its arrival on the source."""
    end_to_end, transfer = _Cells(), _Cells()
    without_bracket = 0
    for source, copy in matched:
        arrived = arrivals.of(copy)
        if arrived is None:
            without_bracket += 1
            continue
        if scope.flows[source.flow].source_time is TimestampType.CREATE:
            end_to_end.add(arrived, Arrival(source.timestamp, source.timestamp))
        started = arrivals.of(source)
        if started is not None:
            transfer.add(arrived, started)
    return Latencies(end_to_end.frozen(), transfer.frozen(), without_bracket)


class _Cells:
    def __init__(self) -> None:
        self._cells: Counter[tuple[int | None, int]] = Counter()
        self._negative = self._total_upper = self._total_lower = 0

    def add(self, arrived: Arrival, started: Arrival) -> None:
        if started.earliest is None:
            return  # no upper bound
        upper = arrived.latest - started.earliest
        if upper < 0:
            self._negative += 1
            return
        lower = None if arrived.earliest is None else max(0, arrived.earliest - started.latest)
        self._cells[None if lower is None else latency_bucket(lower), latency_bucket(upper)] += 1
        self._total_upper += upper
        self._total_lower += lower or 0

    def frozen(self) -> LatencyCells:
        return LatencyCells(dict(self._cells), self._negative, self._total_upper, self._total_lower)


def cap_evidence(evidence: Iterable[Evidence], cap: int | None) -> tuple[Evidence, ...]:
    """Return *evidence* in order, at most *cap* per verdict."""
    rank = {verdict: place for place, verdict in enumerate(Verdict)}
    taken: Counter[Verdict] = Counter()
    kept = []
    for each in sorted(
        evidence, key=lambda one: (rank[one.verdict], one.flow, one.partition, one.offset)
    ):
        taken[each.verdict] += 1
        if cap is None or taken[each.verdict] <= cap:
            kept.append(each)
    return tuple(kept)
