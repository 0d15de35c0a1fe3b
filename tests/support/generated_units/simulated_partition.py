"""Simulates one partition of a flow: records, their outcomes and arrival times."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from mm2slo_core.audit.unit_outcome import Verdict

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
