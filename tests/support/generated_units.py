"""Generated records of both sides with known faults, without a cluster."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from fault_injection import Found, Place, Truth
from reference_fingerprint import keeps_key, keeps_record

from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    AuditRecord,
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import SURPLUS, Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow


class Drawing:
    """Evaluates each fingerprint and key hash once per sample, instead of each record."""

    def __init__(self, records: Iterable[AuditRecord]) -> None:
        self._records = tuple(records)
        self._of_content: defaultdict[int, list[int]] = defaultdict(list)
        self._of_key: defaultdict[int | None, list[int]] = defaultdict(list)
        for place, record in enumerate(self._records):
            self._of_content[record.fingerprint].append(place)
            self._of_key[record.key_hash].append(place)

    def draw(self, sample: Sample) -> list[AuditRecord]:
        """The records in either stratum, marked with their strata."""
        contents = {
            place
            for fingerprint, places in self._of_content.items()
            if keeps_record(sample, fingerprint)
            for place in places
        }
        keys = {
            place
            for key_hash, places in self._of_key.items()
            if keeps_key(sample, key_hash)
            for place in places
        }
        return [
            replace(self._records[place], in_records=place in contents, in_keys=place in keys)
            for place in sorted(contents | keys)
        ]


POLL_MS = 50
REQUEST_MS = 3
MAX_PENDING_MS = 600

_NEAR = 50
"""A moved record is inserted among this many records of its time."""
_PAIRED = frozenset({Verdict.ALTERED, Verdict.MOVED})


@dataclass(frozen=True, slots=True)
class Generated:
    """The input of an audit and its expected result."""

    scope: UnitScope
    records: tuple[AuditRecord, ...]
    polls: tuple[ArrivalPoll, ...]
    truth: Truth
    counts: dict[Verdict, int]
    """Of all verdicts, including those without evidence."""
    end_to_end: tuple[int, ...]
    """True latencies of matched records, ms."""
    transfer: tuple[int, ...]


def generate(
    seed: int, *, partitions: int = 3, size: int = 4_000, faults: Faults | None = None
) -> Generated:
    """*partitions* lanes of *size* source records each; equal seeds give equal units."""
    draw = random.Random(seed)
    chosen = faults or Faults()
    lanes = [simulate(number, size, chosen, draw) for number in range(partitions)]
    taken_at = max(each.sent[-1].timestamp for each in lanes) + 400
    _move(lanes, chosen.moved_again, draw)
    _judge_age(lanes, taken_at)
    targets = [_target(lane, lanes, draw) for lane in lanes]
    scope = UnitScope(
        index=0,
        target_topic="us.generated",
        flows=(FlowScope(Flow("us", "eu"), "generated", tuple(map(_source_scope, lanes))),),
        partitions=tuple(
            TargetPartition(lane.number, 0, 0, len(lane.written), chosen.unauditable)
            for lane in lanes
        ),
        window=Window(START, taken_at),
        identity=Identity(),
        taken_at=taken_at,
        max_pending=MAX_PENDING_MS,
    )
    if chosen.late:
        scope = replace(scope, earlier=(_earlier(scope, lanes, chosen.late),))
    records = [each for lane in lanes for each in _records(lane)]
    polls = [
        poll
        for lane, arrived in zip(lanes, targets, strict=True)
        for poll in (
            *_polls(Side.SOURCE, lane.number, lane.arrived, lane.log_start),
            *_polls(Side.TARGET, lane.number, arrived, 0),
        )
    ]
    truth = _truth(lanes)
    latencies = [each for pair in zip(lanes, targets, strict=True) for each in _latencies(*pair)]
    return Generated(
        scope=scope,
        records=tuple(records),
        polls=tuple(polls),
        truth=truth,
        counts=_counts(lanes, truth, expired=chosen.expired * partitions),
        end_to_end=tuple(each for each, _ in latencies),
        transfer=tuple(each for _, each in latencies),
    )


def _move(lanes: list[Lane], again: int, draw: random.Random) -> None:
    """Write moved records into the next lane, outside replayed blocks."""
    for lane in lanes:
        other, left = lanes[(lane.number + 1) % len(lanes)], again
        for offset, verdict in lane.verdicts.items():
            if verdict is not Verdict.MOVED:
                continue
            moved = Written(lane.record(offset), offset, Verdict.MOVED, lane.number)
            places = [
                place
                for place, each in enumerate(other.written)
                if each.verdict is None and each.record.timestamp >= moved.record.timestamp
            ]
            place = draw.choice(places[:_NEAR])
            copies = [moved, replace(moved, verdict=Verdict.DUPLICATE)][: 1 + bool(left)]
            other.written[place:place] = copies
            left -= len(copies) - 1


def _judge_age(lanes: list[Lane], taken_at: int) -> None:
    for lane in lanes:
        for offset, verdict in lane.verdicts.items():
            old = taken_at - lane.record(offset).timestamp > MAX_PENDING_MS
            if verdict is Verdict.PENDING and old:
                lane.verdicts[offset] = Verdict.OVERDUE


def _earlier(scope: UnitScope, lanes: list[Lane], late: int) -> UnitScope:
    """An audit of the first halves, while the flow was stopped; notes what it found overdue."""
    half = len(lanes[0].sent) // 2
    taken_at = lanes[0].sent[half].timestamp
    stopped = half - MAX_PENDING_MS // STEP_MS - late
    targets = []
    for lane in lanes:
        plain = [
            (at, each.origin)
            for at, each in enumerate(lane.written)
            if each.verdict is None and each.origin is not None
        ]
        end = next(at for at, origin in plain if origin >= lane.log_start + stopped)
        targets.append(TargetPartition(lane.number, 0, 0, end))
        lane.late |= {
            origin
            for at, origin in plain
            if at >= end and taken_at - lane.record(origin).timestamp > MAX_PENDING_MS
        }
    (flow,) = scope.flows
    sources = tuple(
        replace(each, end=each.log_start + half, next_offset=each.log_start + stopped)
        for each in flow.partitions
    )
    return replace(
        scope,
        flows=(replace(flow, partitions=sources),),
        partitions=tuple(targets),
        window=Window(START, taken_at),
        taken_at=taken_at,
    )


def _source_scope(lane: Lane) -> SourcePartition:
    return SourcePartition(
        partition=lane.number,
        log_start=lane.log_start,
        read_from=lane.log_start,
        end=lane.log_start + len(lane.sent),
        next_offset=lane.next_offset,
        known_from=lane.known_from,
        expired=lane.log_start,
    )


def _target(lane: Lane, lanes: list[Lane], draw: random.Random) -> list[int]:
    """When each target record arrived."""
    sources: list[int] = []
    for each in lane.written:
        if each.origin is None:
            sources.append(sources[-1] if sources else START)
        else:
            origin = lanes[each.lane]
            sources.append(origin.arrived[each.origin - origin.log_start])
    return arrivals(sources, draw)


def _records(lane: Lane) -> Iterator[AuditRecord]:
    for place, sent in enumerate(lane.sent):
        yield AuditRecord(0, 0, Side.SOURCE, lane.number, lane.log_start + place, *sent)
    for offset, written in enumerate(lane.written):
        yield AuditRecord(0, 0, Side.TARGET, lane.number, offset, *written.record)


def _polls(side: Side, partition: int, arrived: Sequence[int], first: int) -> Iterator[ArrivalPoll]:
    """Polls that see at some time between request and answer what has arrived by then."""
    earliest: int | None = None
    for request in range(START - POLL_MS, arrived[-1] + 2 * POLL_MS, POLL_MS):
        end = first + bisect_right(arrived, request + REQUEST_MS // 2)
        yield ArrivalPoll(0, 0, side, partition, end, earliest, request + REQUEST_MS)
        earliest = request


def _truth(lanes: Sequence[Lane]) -> Truth:
    truth = Truth()
    for lane in lanes:
        for offset, verdict in lane.verdicts.items():
            truth.add(verdict, Side.SOURCE, [Place(lane.number, offset)])
        truth.add(Verdict.LATE, Side.SOURCE, [Place(lane.number, each) for each in lane.late])
        for offset, each in enumerate(lane.written):
            place = Place(lane.number, offset)
            if each.verdict in SURPLUS or each.verdict is Verdict.UNAUDITABLE:
                truth.add(each.verdict, Side.TARGET, [place])
            elif each.verdict in _PAIRED and each.origin is not None:
                truth.counterparts[Found(Side.SOURCE, each.lane, each.origin)] = place
    return truth


def _counts(lanes: Sequence[Lane], truth: Truth, *, expired: int) -> dict[Verdict, int]:
    counts = truth.counts()
    # What is out of order is matched as well.
    unmatched = sum(
        verdict is not Verdict.OUT_OF_ORDER for lane in lanes for verdict in lane.verdicts.values()
    )
    late = sum(len(lane.late) for lane in lanes)
    counts[Verdict.MATCHED] = sum(len(lane.sent) for lane in lanes) - unmatched - late
    counts[Verdict.EXPIRED] = expired
    return counts


def _latencies(lane: Lane, arrived: Sequence[int]) -> Iterator[tuple[int, int]]:
    """End to end and transfer of each plain copy."""
    for offset, each in enumerate(lane.written):
        if each.verdict is None and each.origin is not None:
            started = lane.arrived[each.origin - lane.log_start]
            yield arrived[offset] - each.record.timestamp, arrived[offset] - started


START: Final = 1_800_000_000_000
"""Timestamp of the first record; epoch ms."""

STEP_MS: Final = 2
"""Between the timestamps of two records; foreign records have timestamps between."""
_SPACING: Final = 6
_ROUND_TRIP: Final = (4, 90)
_HALF: Final = 1 << 63
_COPIED: Final = frozenset({Verdict.MATCHED, Verdict.OUT_OF_ORDER})


@dataclass(frozen=True, slots=True)
class Faults:
    """Number of faults of each kind per partition."""

    lost: int = 20
    altered: int = 20
    moved: int = 20
    moved_again: int = 0
    """Moved records with a second copy, which is a duplicate."""
    duplicate: int = 20
    duplicates_each: int = 1
    """Additional copies of each of these records."""
    extra: int = 20
    out_of_order: int = 20
    identical: int = 20
    """Records that the producer sent twice: no fault."""
    replays: tuple[int, ...] = (2, 150)
    """Lengths of replayed blocks."""
    expired: int = 30
    unauditable: int = 5
    """On the source: missing before the first sync; on the target: without a source record."""
    tail: int = 400
    """Source records beyond the position; half of them are copied."""
    late: int = 0
    """Copies that an earlier audit, while the flow was stopped, found overdue."""
    keys: int = 40
    """Number of keys in the partition."""


class Sent(NamedTuple):
    """A record as produced."""

    timestamp: int
    fingerprint: int
    key_hash: int | None
    size: int


@dataclass(slots=True)
class Lane:
    """A source partition and its target records, in order."""

    number: int
    sent: list[Sent]
    """By source offset, from `log_start` on."""
    log_start: int
    next_offset: int
    known_from: int
    arrived: list[int]
    """On the source, by offset from `log_start` on; epoch ms."""
    written: list[Written] = field(default_factory=list)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    """Verdicts by source offset, except matched and late."""
    late: set[int] = field(default_factory=set)
    """Source offsets."""

    def record(self, offset: int) -> Sent:
        """The record at a source offset."""
        return self.sent[offset - self.log_start]


@dataclass(frozen=True, slots=True)
class Written:
    """A target record with its source offset, and its verdict if it is not a plain copy."""

    record: Sent
    origin: int | None
    verdict: Verdict | None = None
    lane: int = 0
    """Partition of its origin; differs only for moved records."""


@dataclass(slots=True)
class _Plan:
    """Source offsets of faults."""

    late: set[int]
    duplicated: set[int]
    foreign: set[int]
    blocks: dict[int, int]


def simulate(number: int, size: int, faults: Faults, draw: random.Random) -> Lane:
    """A lane of *size* source records; moved records are written later, to another lane."""
    sent = [_sent(number, place, faults.keys, draw) for place in range(size)]
    log_start = faults.expired
    lane = Lane(
        number=number,
        sent=sent,
        log_start=log_start,
        next_offset=log_start + size - faults.tail,
        known_from=log_start + 3 * faults.unauditable,
        arrived=_rising((each.timestamp for each in sent), (0, 4), draw),
    )
    plan = _planned(lane, faults, draw)
    copied_to = log_start + size - faults.tail // 2
    for offset in range(copied_to, log_start + size):
        lane.verdicts[offset] = Verdict.PENDING
    lane.written += [_foreign_record(draw, Verdict.UNAUDITABLE) for _ in range(faults.unauditable)]
    for offset in _emitted(range(log_start, copied_to), plan.late):
        _copy(lane, offset, draw)
        if offset in plan.duplicated:
            again = [lane.written[-3]] * faults.duplicates_each
            _write_again(lane, again, Verdict.DUPLICATE)
        if offset in plan.foreign:
            lane.written.append(_foreign_record(draw, Verdict.EXTRA))
        if offset in plan.blocks:
            copies = [each for each in lane.written if each.verdict is None]
            _write_again(lane, copies[-plan.blocks[offset] :], Verdict.REPLAY)
    return lane


def _planned(lane: Lane, faults: Faults, draw: random.Random) -> _Plan:
    """Choose the offsets of faults, and set the verdicts on source records."""
    for offset in range(lane.log_start, lane.known_from, 3):
        lane.verdicts[offset] = Verdict.UNAUDITABLE
    slots = _slots(range(lane.known_from + 2 * _SPACING, lane.next_offset - _SPACING), draw)
    late = {next(slots) for _ in range(faults.out_of_order)}
    for offset in late:
        for overtaking in (offset + 1, offset + 2):
            lane.verdicts[overtaking] = Verdict.OUT_OF_ORDER
    for verdict, count in (
        (Verdict.LOST, faults.lost),
        (Verdict.ALTERED, faults.altered),
        (Verdict.MOVED, faults.moved),
    ):
        for _ in range(count):
            lane.verdicts[next(slots)] = verdict
    for _ in range(faults.identical):
        place = next(slots) - lane.log_start
        lane.sent[place + 1] = lane.sent[place]
    return _Plan(
        late=late,
        duplicated={next(slots) for _ in range(faults.duplicate)},
        foreign={next(slots) for _ in range(faults.extra)},
        blocks=dict(zip((next(slots) for _ in faults.replays), faults.replays, strict=True)),
    )


def _copy(lane: Lane, offset: int, draw: random.Random) -> None:
    """Write the copy of the record at a source offset, if any."""
    record, verdict = lane.record(offset), lane.verdicts.get(offset, Verdict.MATCHED)
    if verdict in _COPIED:
        lane.written.append(Written(record, offset, lane=lane.number))
    elif verdict is Verdict.ALTERED:
        changed = record._replace(fingerprint=_hash(draw))
        lane.written.append(Written(changed, offset, verdict, lane.number))


def _sent(number: int, place: int, keys: int, draw: random.Random) -> Sent:
    # Keys belong to one partition; every tenth record has none.
    key = None if place % 10 == 0 else number * 1_000_003 + draw.randrange(keys)
    return Sent(START + STEP_MS * (place // 2 * 2), _hash(draw), key, draw.randrange(20, 400))


def _hash(draw: random.Random) -> int:
    return draw.getrandbits(64) - _HALF


def _foreign_record(draw: random.Random, verdict: Verdict) -> Written:
    at = START + STEP_MS * draw.randrange(1_000) + 1
    return Written(Sent(at, _hash(draw), draw.getrandbits(40), 50), None, verdict)


def _write_again(lane: Lane, copies: list[Written], verdict: Verdict) -> None:
    """Write duplicates of *copies*."""
    lane.written += [Written(each.record, each.origin, verdict, lane.number) for each in copies]


def _slots(offsets: range, draw: random.Random) -> Iterator[int]:
    """Places for faults in random order, with a minimum distance."""
    places = list(offsets[::_SPACING])
    draw.shuffle(places)
    return iter(places)


def _emitted(offsets: range, late: set[int]) -> Iterator[int]:
    """Source order, except that each of *late* comes two records later."""
    held: list[tuple[int, int]] = []
    for offset in offsets:
        if offset in late:
            held.append((offset + 2, offset))
            continue
        yield offset
        for _, waiting in [each for each in held if each[0] == offset]:
            yield waiting
        held = [each for each in held if each[0] != offset]


def _rising(times: Iterator[int], delay: tuple[int, int], draw: random.Random) -> list[int]:
    """Each time with a random delay, never decreasing: a log is append-only."""
    found: list[int] = []
    for time in times:
        found.append(max(time + draw.randint(*delay), found[-1] if found else 0))
    return found


def arrivals(times: list[int], draw: random.Random) -> list[int]:
    """Arrival times on the target of records that arrived on the source at *times*."""
    return _rising(iter(times), _ROUND_TRIP, draw)
