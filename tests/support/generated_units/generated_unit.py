"""A generated unit with its polls and true verdicts."""

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fault_injection import Found, Place, Truth

from generated_units.simulated_partition import (
    START,
    STEP_MS,
    Faults,
    Lane,
    Written,
    arrivals,
    simulate,
)
from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    AuditRecord,
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.audit.unit_outcome import SURPLUS, Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow

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
