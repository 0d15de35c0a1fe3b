"""Units with so few hashes and times that all kinds of ties occur."""

import random
from dataclasses import dataclass, replace
from itertools import count

from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    AuditRecord,
    Comparison,
    Cut,
    FlowScope,
    SourcePartition,
    TargetPartition,
    TimestampType,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow

_TIMES = range(1_000, 1_012)
_WINDOW = Window(1_002, 1_010)


@dataclass(frozen=True, slots=True)
class RandomUnit:
    """The data to judge one unit."""

    scope: UnitScope
    records: tuple[AuditRecord, ...]
    polls: tuple[ArrivalPoll, ...]


def random_unit(seed: int, index: int, comparison: Comparison) -> RandomUnit:
    """A random unit, deterministic by *seed*."""
    draw = random.Random(seed)
    flows = draw.choice((1, 1, 2))
    plain = draw.random() < 0.6
    scope = UnitScope(
        index=index,
        target_topic=f"unit-{index}",
        flows=tuple(_flow(number, draw, plain=plain) for number in range(flows)),
        partitions=tuple(
            TargetPartition(number, 0, 0, 100, draw.choice((0, 0, 8))) for number in range(2)
        ),
        window=_WINDOW,
        identity=replace(
            Identity() if plain else Identity(timestamp=draw.random() < 0.5),
            must_change=("header:a", "value")[: seed % 3],
        ),
        comparison=comparison,
        target_time=_time_type(draw, plain=plain),
        taken_at=1_012,
        max_pending=6,
        tombstones_kept=(0, 5, 9)[seed // 3 % 3],
    )
    scope = replace(scope, earlier=_earlier(scope, random.Random(seed)))
    contents = draw.choice((3, 12, 40))
    keyed = draw.choice((2, 6))
    records, polls = [], []
    for side, flow in [(Side.SOURCE, flow) for flow in range(flows)] + [(Side.TARGET, 0)]:
        for partition in range(2):
            offset = draw.randrange(5)
            for _ in range(draw.randrange(15)):
                records.append(
                    _record(draw, scope, side, (flow, partition, offset), (contents, keyed))
                )
                offset += draw.choice((1, 1, 1, 2))
            polls += _polls(draw, index, side, (flow, partition))
    return RandomUnit(scope, tuple(records), tuple(polls))


def bucketed_unit(seed: int, index: int) -> RandomUnit:
    """A random unit with one flow, ignored timestamps and random cuts."""
    for attempt in count(seed * 1_000):
        unit = random_unit(attempt, index, Comparison.RECORDS)
        if len(unit.scope.flows) == 1 and not unit.scope.identity.timestamp:
            break
    draw = random.Random(seed)
    (flow,) = unit.scope.flows
    partitions = tuple(replace(each, cuts=_cuts(draw)) for each in flow.partitions)
    flows = (replace(flow, partitions=partitions),)
    return replace(unit, scope=replace(unit.scope, flows=flows))


def _earlier(scope: UnitScope, draw: random.Random) -> tuple[UnitScope, ...]:
    """Audits that read less of both sides."""
    return tuple(
        replace(
            scope,
            flows=tuple(
                replace(
                    flow,
                    partitions=tuple(
                        replace(each, end=draw.randrange(4, 16), next_offset=draw.choice((None, 7)))
                        for each in flow.partitions
                    ),
                )
                for flow in scope.flows[: draw.choice((1, 2))]
            ),
            partitions=tuple(replace(each, end=draw.randrange(12)) for each in scope.partitions),
            window=Window(draw.choice((1_000, 1_004)), 1_009),
            taken_at=draw.choice((1_009, 1_013)),
        )
        for _ in range(draw.choice((0, 1, 2)))
    )


def _cuts(draw: random.Random) -> tuple[Cut, ...]:
    cuts = draw.choice((0, 1, 5))
    edges = (sorted(draw.sample(range(1, 16), cuts)) for _side in Side)
    return tuple(map(Cut, *edges))


def _flow(number: int, draw: random.Random, *, plain: bool) -> FlowScope:
    return FlowScope(
        flow=Flow(f"s{number}", "t"),
        source_topic="topic",
        partitions=tuple(
            SourcePartition(
                partition=each,
                log_start=0,
                read_from=0,
                end=100,
                next_offset=draw.choice((None, 5, 12)),
                known_from=draw.choice((0, 0, 4)),
                expired=draw.choice((0, 3)),
            )
            for each in range(2)
        ),
        source_time=_time_type(draw, plain=plain),
        has_positions=draw.random() < 0.8,
    )


def _time_type(draw: random.Random, *, plain: bool) -> TimestampType:
    stamped = not plain and draw.random() < 0.4
    return TimestampType.LOG_APPEND if stamped else TimestampType.CREATE


def _record(
    draw: random.Random,
    scope: UnitScope,
    side: Side,
    place: tuple[int, int, int],
    variety: tuple[int, int],
) -> AuditRecord:
    contents, keys = variety
    flow, partition, offset = place
    masks = [(part, *place, side) for part, _ in enumerate(scope.identity.must_change)]
    content = draw.randrange(contents)
    # Like real hashes: equal fingerprints mean equal keys, times and sizes, if identified.
    of_content = random.Random(content)
    timestamp = of_content.choice(_TIMES)
    if not scope.identity.timestamp or draw.random() < 0.1:
        timestamp = draw.choice(_TIMES)
    key = of_content.choice((None, *range(keys)))
    return AuditRecord(
        topic=scope.index,
        flow=flow,
        side=side,
        partition=partition,
        offset=offset,
        timestamp=timestamp,
        fingerprint=content - contents // 2,
        key_hash=None if key is None else key - 2,
        size=content * 3,
        tombstone=of_content.random() < 0.3,
        masked=tuple(random.Random(f"{seed}").choice((None, 1, 2, 3)) for seed in masks),
    )


def _polls(
    draw: random.Random, index: int, side: Side, place: tuple[int, int]
) -> list[ArrivalPoll]:
    flow, partition = place
    polls = []
    earliest, end, now = None, 0, 1_000
    for _ in range(draw.randrange(8)):
        end += draw.choice((0, 1, 4))
        now += draw.randrange(1, 6)
        polls.append(ArrivalPoll(index, flow, side, partition, end, earliest, now))
        earliest = draw.choice((now - 1, None))
    return polls
