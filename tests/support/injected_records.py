"""Both sides of a unit with injected faults, and the true verdict of each record.

`inject(plan)` writes source and target logs step by step and records each verdict by offset when
it injects the fault; it compares nothing. `plans()` (hypothesis) and `random_plan(seed)` choose
faults.

Not generated, because only definitions decide the verdict:

- a loss and a duplicate of the same identical records (a group with a loss is never copied again);
- a foreign record that equals a record of the source, or has the key and timestamp of a missing one
  (foreign records have keys and timestamps of their own);
- two records of one key (or, without a key, of one partition) and timestamp of which one is lost
  or altered: indistinguishable (timestamps around those are unique);
- a copy whose source record is gone, and a missing record with its key and timestamp (likewise);
- identical records in two flows of which one is lost;
- identical records that are moved, altered or reordered: indistinguishable;
- a record moved to where its key is on the source as well (a key has one partition there).
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto

from hypothesis import strategies as st
from reference_fingerprint import chained, keeps_key, keeps_record

from mm2slo_core.audit.audit_scope import (
    ArrivalPoll,
    AuditRecord,
    Comparison,
    FlowScope,
    SourcePartition,
    TargetPartition,
    UnitScope,
    Window,
)
from mm2slo_core.audit.fingerprint import Identity, Sample
from mm2slo_core.audit.unit_outcome import KeyCell, Verdict
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.topology import Flow

START, END = 1_000_000, 2_000_000
"""The window, epoch ms; plans may reach beyond it on both sides."""
WINDOW = Window(START, END)


class Fault(StrEnum):
    NONE = "none"
    DROP = "drop"
    DUPLICATE = "duplicate"
    REPLAY = "replay"
    """After this record, the last records of its partition are replayed."""
    MOVE = "move"
    REORDER = "reorder"
    """The copy is swapped with that of the next record of its partition."""
    ALTER = "alter"
    EXTRA = "extra"
    """A foreign record follows on the target."""


_LONE = {Fault.DROP, Fault.ALTER}
"""Faults with unique timestamps, like copies that outlive their source record."""
_SINGLE = {Fault.MOVE, Fault.ALTER, Fault.REORDER}


@dataclass(slots=True)
class Truth:
    """True verdicts of the records in the window."""

    places: defaultdict[Verdict, set[Place]] = field(default_factory=lambda: defaultdict(set))
    """Source records by verdict; duplicates, replays and extras by place on the target."""
    expired: Counter[tuple[int, int]] = field(default_factory=Counter)
    copies: dict[Place, tuple[int, int]] = field(default_factory=dict)
    """Matched: source place -> partition and offset of its copy."""
    arrivals: dict[Place, int] = field(default_factory=dict)
    """Of all records, epoch ms."""
    keys: set[int] = field(default_factory=set)
    split: set[int] = field(default_factory=set)
    disordered: set[int] = field(default_factory=set)
    """Key hashes."""
    records_moved: int = 0
    of_keys: dict[int, KeyCell] = field(default_factory=dict)
    """Counts of each key."""
    overtook: Counter[int] = field(default_factory=Counter)

    def count(self, verdict: Verdict) -> int:
        if verdict is Verdict.EXPIRED:
            return self.expired.total()
        return len(self.places.get(verdict, ()))


@dataclass(frozen=True, slots=True)
class Injected:
    records: tuple[AuditRecord, ...]
    polls: tuple[ArrivalPoll, ...]
    scope: UnitScope
    truth: Truth


def inject(plan: Plan, *, index: int = 0, sample: Sample | None = None) -> Injected:
    """Build both sides of *plan* as the unit *index*."""
    builder = _Builder(plan, index, sample or Sample(1.0))
    return builder.build()


class _Kind(Enum):
    COPY = auto()
    AGAIN = auto()
    STRAY = auto()
    """Moved or altered: explained by its source record."""
    OUTLIVED = auto()
    FOREIGN = auto()


@dataclass(slots=True)
class _Row:
    record: AuditRecord
    kind: _Kind
    group: int
    """Number of its step."""
    origin: Place | None = None
    """Source record of a copy."""


@dataclass(slots=True)
class _Lane:
    """State of one source partition of one flow."""

    offset: int = 0
    steps: int = 0
    seen: int = 0
    log_start: int = 0
    known_from: int = 0
    next_offset: int | None = None
    held: _Row | None = None
    """A copy to be overtaken by the next."""


class _Builder:
    def __init__(self, plan: Plan, index: int, sample: Sample) -> None:
        self.plan, self.index, self.sample = plan, index, sample
        self.truth = Truth()
        self.sources: list[AuditRecord] = []
        self.targets: defaultdict[int, list[_Row]] = defaultdict(list)
        self.lanes: defaultdict[tuple[int, int], _Lane] = defaultdict(_Lane)
        self.lossy: set[int] = set()
        """Steps with a lost record."""
        self.unauditable: list[AuditRecord] = []
        self.tail: list[AuditRecord] = []
        self.dropped: list[AuditRecord] = []
        self.now = plan.start

    def build(self) -> Injected:
        steps = list(self._normalised())
        for step in steps:
            self.lanes[step.flow, step.partition].steps += 1
        newest: dict[tuple[int, int], Step] = {}
        followers: list[Step | None] = []
        for step in reversed(steps):
            followers.append(newest.get(_lane(step)))
            newest[_lane(step)] = step
        for number, (step, following) in enumerate(zip(steps, reversed(followers), strict=True)):
            self._write(number, step, following)
        scope = self._scope()
        self._settle(scope)
        rows = [row.record for partition in self.targets.values() for row in partition]
        polls = tuple(polls_of(self.truth.arrivals, self.index))
        return Injected((*self.sources, *rows), polls, scope, self.truth)

    def _normalised(self) -> Iterator[Step]:
        """Derive partitions from keys, and reduce steps with single-record faults to one record."""
        for step in self.plan.steps:
            partitions = self.plan.source_partitions
            partition = (step.partition if step.key is None else step.key) % partitions
            single = step.fault in _SINGLE
            yield replace(
                step, partition=partition, multiplicity=1 if single else step.multiplicity
            )

    def _write(self, number: int, step: Step, following: Step | None) -> None:
        lane = self.lanes[_lane(step)]
        ends, seen = self.plan.ends, lane.seen + 1
        outlived = ends.expired < seen <= ends.expired + ends.outlived
        lone = step.fault in _LONE or outlived
        self.now += step.pause + lone
        lane.offset += step.hole
        # Identical records form one group; the step number is their content.
        records = [self._source(number, step, lane.offset + n) for n in range(step.multiplicity)]
        lane.offset += step.multiplicity
        lane.seen = seen
        if seen <= ends.expired:
            lane.log_start = lane.known_from = lane.offset
            inside = sum(WINDOW.contains(each.timestamp) for each in records)
            self.truth.expired[_lane(step)] += inside
        elif outlived:
            lane.log_start = lane.known_from = lane.offset
            for each in records:
                self._copy(_Row(self._copied(each, self._home(step)), _Kind.OUTLIVED, number))
        elif seen <= ends.expired + ends.outlived + ends.unknown:
            lane.known_from = lane.offset
            self.sources.extend(records)
            self.unauditable.extend(records)
        elif seen > lane.steps - ends.tail:
            if lane.next_offset is None:
                lane.next_offset = records[0].offset
            self.sources.extend(records)
            self.tail.extend(records)
        else:
            self.sources.extend(records)
            self._befall(number, step, records, following)
        self.now += lone

    def _befall(
        self, number: int, step: Step, records: list[AuditRecord], following: Step | None
    ) -> None:
        lane, home, last = self.lanes[_lane(step)], self._home(step), records[-1]
        rows = [
            _Row(self._copied(each, home), _Kind.COPY, number, origin=place(each))
            for each in records
        ]
        final = rows[-1]
        match step.fault:
            case Fault.DROP:
                self.lossy.add(number)
                self.dropped.append(last)
                del rows[-1]
            case Fault.ALTER:
                final.kind = _Kind.STRAY
                altered = replace(final.record, fingerprint=chained(number, 1))
                final.record = self._sampled(altered)
                self._note(Verdict.ALTERED, last)
            case Fault.MOVE:
                away = (home + 1) % self.plan.target_partitions
                final.record = replace(final.record, partition=away)
                if self.plan.comparison is Comparison.RECORDS:
                    final.kind = _Kind.STRAY
                    self._note(Verdict.MOVED, last)
            case Fault.REORDER if self._can_overtake(step, following):
                lane.held = final
                return
        for row in rows:
            self._copy(row)
        self._release(lane, last)
        if step.fault is Fault.DUPLICATE:
            self._again([final])
        elif step.fault is Fault.REPLAY:
            self._again(self._block(home, step))
        elif step.fault is Fault.EXTRA:
            self._foreign(number, home, keyed=step.key is not None)

    def _can_overtake(self, step: Step, following: Step | None) -> bool:
        lane = self.lanes[_lane(step)]
        return (
            following is not None
            and following.fault is Fault.NONE
            and following.multiplicity == 1
            and lane.seen + 1 <= lane.steps - self.plan.ends.tail
            and self._home(step) == self._home(following)
        )

    def _release(self, lane: _Lane, overtaker: AuditRecord) -> None:
        held, lane.held = lane.held, None
        if held is None:
            return
        self._copy(held)
        if not WINDOW.contains(overtaker.timestamp):
            return
        if self.plan.comparison is Comparison.RECORDS:
            self._note(Verdict.OUT_OF_ORDER, overtaker)
        if overtaker.key_hash is not None and overtaker.key_hash == held.record.key_hash:
            self.truth.disordered.add(overtaker.key_hash)
            self.truth.overtook[overtaker.key_hash] += 1

    def _block(self, home: int, step: Step) -> list[_Row]:
        """The newest copies of this flow, back to the first that must not be copied again."""
        block: list[_Row] = []
        for row in reversed(self.targets[home]):
            if len(block) == step.block or row.kind is not _Kind.COPY or row.group in self.lossy:
                break
            if row.origin is not None and row.origin[1] == step.flow:
                block.append(row)
        return block[::-1]

    def _again(self, rows: list[_Row]) -> None:
        for row in rows:
            self._copy(_Row(row.record, _Kind.AGAIN, row.group))

    def _foreign(self, number: int, partition: int, *, keyed: bool) -> None:
        self.now += 1
        record = AuditRecord(
            topic=self.index,
            flow=0,
            side=Side.TARGET,
            partition=partition,
            offset=-1,
            timestamp=self.now,
            fingerprint=chained(number, 2),
            key_hash=chained(number, 3) if keyed else None,
            size=7,
        )
        self._copy(_Row(self._sampled(record), _Kind.FOREIGN, number))
        self.now += 1

    def _source(self, number: int, step: Step, offset: int) -> AuditRecord:
        record = AuditRecord(
            topic=self.index,
            flow=step.flow,
            side=Side.SOURCE,
            partition=step.partition,
            offset=offset,
            timestamp=self.now,
            fingerprint=chained(number, 0),
            key_hash=None if step.key is None else chained(step.key),
            size=10 + number,
        )
        self.truth.arrivals[place(record)] = self.now + 20
        return self._sampled(record)

    def _sampled(self, record: AuditRecord) -> AuditRecord:
        return replace(
            record,
            in_records=keeps_record(self.sample, record.fingerprint),
            in_keys=keeps_key(self.sample, record.key_hash),
        )

    def _home(self, step: Step) -> int:
        if self.plan.comparison is Comparison.RECORDS or step.key is None:
            return step.partition % self.plan.target_partitions
        return (step.key * 7 + 1) % self.plan.target_partitions

    def _copied(self, record: AuditRecord, partition: int) -> AuditRecord:
        return replace(record, side=Side.TARGET, flow=0, partition=partition, offset=-1)

    def _copy(self, row: _Row) -> None:
        rows = self.targets[row.record.partition]
        # Every fifth offset is a transaction marker.
        offset = len(rows) + len(rows) // 4
        row.record = replace(row.record, offset=offset)
        rows.append(row)
        self.truth.arrivals[place(row.record)] = self.now + 300

    def _note(self, verdict: Verdict, record: AuditRecord) -> None:
        if WINDOW.contains(record.timestamp):
            self.truth.places[verdict].add(place(record))

    def _scope(self) -> UnitScope:
        plan = self.plan
        flows = []
        for flow in range(plan.flows):
            partitions = []
            for partition in range(plan.source_partitions):
                lane = self.lanes[flow, partition]
                next_offset = lane.offset if lane.next_offset is None else lane.next_offset
                partitions.append(
                    SourcePartition(
                        partition,
                        log_start=lane.log_start,
                        read_from=lane.log_start,
                        end=lane.offset,
                        next_offset=next_offset if plan.ends.position_known else None,
                        known_from=lane.known_from,
                        expired=self.truth.expired[flow, partition],
                    )
                )
            flows.append(FlowScope(Flow(f"s{flow}", "t"), "topic", tuple(partitions)))
        targets = []
        for partition in range(plan.target_partitions):
            rows = self.targets[partition]
            outlived = [row.record.offset for row in rows if row.kind is _Kind.OUTLIVED]
            end = rows[-1].record.offset + 1 if rows else 0
            auditable_from = max(outlived, default=-1) + 1
            targets.append(TargetPartition(partition, 0, 0, end, auditable_from))
        return UnitScope(
            index=self.index,
            target_topic=f"topic{self.index}",
            flows=tuple(flows),
            partitions=tuple(targets),
            window=WINDOW,
            identity=Identity(),
            comparison=plan.comparison,
            taken_at=self.now + plan.cooling,
            max_pending=MAX_PENDING,
        )

    def _settle(self, scope: UnitScope) -> None:
        """Record the verdicts that depend on the ends and the snapshot."""
        known = self.plan.ends.position_known
        for record in self.unauditable:
            self._note(Verdict.UNAUDITABLE, record)
        for record in self.tail:
            self._note(_waiting(record, scope), record)
        for record in self.dropped:
            self._note(Verdict.LOST if known else _waiting(record, scope), record)
        per_key: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for partition in scope.partitions:
            rows = self.targets[partition.partition]
            for before, row, after in zip([None, *rows], rows, [*rows[1:], None], strict=False):
                in_run = any(each and each.kind is _Kind.AGAIN for each in (before, after))
                auditable = row.record.offset >= partition.auditable_from
                self._settle_row(row, auditable=auditable, in_run=in_run)
                key = row.record.key_hash
                if key is not None and auditable and WINDOW.contains(row.record.timestamp):
                    per_key[key][row.record.partition] += 1
        self._settle_keys(per_key)

    def _settle_row(self, row: _Row, *, auditable: bool, in_run: bool) -> None:
        if row.kind is _Kind.COPY and row.origin is not None:
            if WINDOW.contains(row.record.timestamp):
                self.truth.places[Verdict.MATCHED].add(row.origin)
                self.truth.copies[row.origin] = (row.record.partition, row.record.offset)
        elif row.kind is _Kind.AGAIN:
            self._note(Verdict.REPLAY if in_run else Verdict.DUPLICATE, row.record)
        elif row.kind is _Kind.OUTLIVED:
            self._note(Verdict.UNAUDITABLE, row.record)
        elif row.kind is _Kind.FOREIGN:
            self._note(Verdict.EXTRA if auditable else Verdict.UNAUDITABLE, row.record)

    def _settle_keys(self, per_key: dict[int, Counter[int]]) -> None:
        homes: dict[int, int] = {}
        sent: Counter[int] = Counter()
        for each in self.sources:
            if each.key_hash is not None and WINDOW.contains(each.timestamp):
                homes[each.key_hash] = each.partition
                sent[each.key_hash] += 1
        self.truth.keys = homes.keys() & per_key.keys()
        self.truth.disordered &= self.truth.keys
        for key in self.truth.keys:
            rows = per_key[key]
            if self.plan.comparison is Comparison.RECORDS:
                strays = rows.total() - rows[homes[key]]
            else:
                strays = rows.total() - max(rows.values())
            self.truth.records_moved += strays
            self.truth.of_keys[key] = KeyCell(
                1, sent[key], rows.total(), strays, self.truth.overtook[key]
            )
            if strays:
                self.truth.split.add(key)


def _waiting(record: AuditRecord, scope: UnitScope) -> Verdict:
    old = scope.taken_at - record.timestamp > MAX_PENDING
    return Verdict.OVERDUE if old else Verdict.PENDING


def _lane(step: Step) -> tuple[int, int]:
    return step.flow, step.partition


MAX_PENDING = 300_000
KEYS = 5
_FEW = (0, 0, 0, 1, 2)


@dataclass(frozen=True, slots=True)
class Step:
    """One source record, or several identical ones in a row."""

    flow: int
    partition: int
    key: int | None
    """A key determines the partition; without one `partition` does."""
    fault: Fault = Fault.NONE
    multiplicity: int = 1
    """The fault applies to the last record, if it allows more than one."""
    pause: int = 1
    """Milliseconds since the previous step; 0: equal timestamps."""
    hole: int = 0
    """Skipped source offsets, as from transaction markers."""
    block: int = 3
    """Maximum records of a replay."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Outcomes of the first and last steps of each partition of a flow, in this order."""

    expired: int = 0
    """Removed from the source before they were copied."""
    outlived: int = 0
    """Copied, then removed from the source: the copies are unauditable."""
    unknown: int = 0
    """Before the oldest sync and never copied: unauditable."""
    tail: int = 0
    """At the end: not copied yet."""
    position_known: bool = True


@dataclass(frozen=True, slots=True)
class Plan:
    steps: tuple[Step, ...]
    ends: Ends = Ends()
    flows: int = 1
    source_partitions: int = 3
    target_partitions: int = 3
    """Fewer than on the source: `KEYS`."""
    start: int = START
    """Timestamp of the first step."""
    cooling: int = 1_000
    """Milliseconds from the last step to the snapshot."""

    @property
    def comparison(self) -> Comparison:
        same = self.source_partitions == self.target_partitions
        return Comparison.RECORDS if same else Comparison.KEYS


def random_plan(seed: int, steps: int = 60) -> Plan:
    """A random plan, deterministic by *seed*."""
    draw = random.Random(seed)
    flows = draw.choice((1, 1, 2))
    fault_rate = draw.choice((0.0, 0.1, 0.25, 0.5))
    long_pause = draw.choice((500, 5_000, 20_000))
    # A reordering needs a faultless next record, so most have no effect.
    faults = [fault for fault in Fault if fault is not Fault.NONE] + [Fault.REORDER] * 2

    def step() -> Step:
        return Step(
            flow=draw.randrange(flows),
            partition=draw.randrange(4),
            key=draw.choice((None, *range(KEYS))),
            fault=draw.choice(faults) if draw.random() < fault_rate else Fault.NONE,
            multiplicity=draw.choice((1, 1, 1, 2, 3)),
            pause=draw.choice((0, 1, 1, 50, long_pause, 5 * long_pause)),
            hole=draw.choice((0, 0, 0, 1, 5)),
            block=draw.randrange(1, 8),
        )

    return Plan(
        steps=tuple(step() for _ in range(steps)),
        ends=Ends(
            expired=draw.choice(_FEW),
            outlived=draw.choice(_FEW),
            unknown=draw.choice(_FEW),
            tail=draw.choice(_FEW),
            position_known=draw.random() < 0.8,
        ),
        flows=flows,
        source_partitions=draw.choice((3, 4)),
        target_partitions=draw.choice((3, 4)),
        start=START - draw.choice((0, 0, 100_000, 500_000)),
        cooling=draw.choice((0, 1_000, 400_000)),
    )


_few = st.sampled_from(_FEW)

_ends = st.builds(
    Ends, expired=_few, outlived=_few, unknown=_few, tail=_few, position_known=st.booleans()
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    flows = draw(st.sampled_from((1, 1, 2)))
    step = st.builds(
        Step,
        flow=st.integers(0, flows - 1),
        partition=st.integers(0, 3),
        key=st.none() | st.integers(0, KEYS - 1),
        fault=st.just(Fault.NONE) | st.sampled_from(Fault),
        multiplicity=st.sampled_from((1, 1, 1, 2, 3)),
        pause=st.sampled_from((1, 0, 50, 20_000, 100_000)),
        hole=st.sampled_from((0, 0, 1, 5)),
        block=st.integers(1, 7),
    )
    return Plan(
        steps=tuple(draw(st.lists(step, max_size=40))),
        ends=draw(_ends),
        flows=flows,
        source_partitions=draw(st.sampled_from((3, 4))),
        target_partitions=draw(st.sampled_from((3, 4))),
        start=START - draw(st.sampled_from((0, 100_000, 500_000))),
        cooling=draw(st.sampled_from((1_000, 0, 400_000))),
    )


Place = tuple[Side, int, int, int]
"""Side, flow (0 on the target), partition, offset."""
POLL_EVERY = 5_000

UNPOLLED_MS = 60_000
"""The polls end this long before the last arrival: later records have no bracket."""


def place(record: AuditRecord) -> Place:
    return record.side, record.flow, record.partition, record.offset


def poll_times(arrivals: Mapping[Place, int]) -> range:
    """Times of all polls; the first is after the first arrival."""
    first = min(arrivals.values(), default=0)
    last = max(arrivals.values(), default=0) - UNPOLLED_MS
    start = first + 2 * POLL_EVERY
    return range(start, max(start, last) + 1, POLL_EVERY)


def bracket(arrival: int, times: range) -> tuple[int | None, int] | None:
    """The poll before the arrival, and the one at or after it."""
    at = max(0, -(-(arrival - times.start) // POLL_EVERY))
    if at >= len(times):
        return None
    return (None if at == 0 else times[at - 1]), times[at]


def polls_of(arrivals: Mapping[Place, int], index: int) -> Iterator[ArrivalPoll]:
    """The polls at which an end offset had changed."""
    times = poll_times(arrivals)
    logs: defaultdict[tuple[Side, int, int], dict[int, int]] = defaultdict(dict)
    for (side, flow, partition, offset), arrival in arrivals.items():
        logs[side, flow, partition][offset] = arrival
    for (side, flow, partition), log in logs.items():
        for offset in sorted(log):
            seen = bracket(log[offset], times)
            later = bracket(log[offset + 1], times) if offset + 1 in log else None
            if seen is not None and seen != later:
                yield ArrivalPoll(index, flow, side, partition, offset + 1, *seen)
