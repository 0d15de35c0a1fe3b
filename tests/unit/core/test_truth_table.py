"""Every row of docs/truth-table.md, simulated with the pure functions in steps of a second.

One flow has two data partitions with 10 records a second each, replicated by the tasks A and B;
task A also replicates the canaries. Each fault starts at 300 s; the simulation ends at 600 s, and
the SLIs are those counted from 420 s on.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from mm2slo_core.indicators.canary_ledger import CanaryLedger
from mm2slo_core.indicators.canary_rules import (
    CanaryArrival,
    CanaryRules,
    PreviousRun,
    SentCanary,
    UnobservableCause,
)
from mm2slo_core.indicators.certain_loss import CertainLoss
from mm2slo_core.indicators.flow_state import (
    DroppedTail,
    FlowEvidence,
    PartitionProgress,
    StallWatch,
    StateTimeouts,
    TaskCommits,
    flow_state,
)
from mm2slo_core.indicators.replication_lag import (
    ArrivalHistory,
    open_transaction_records,
    record_lag,
    time_lag,
)
from mm2slo_core.indicators.sli_counters import (
    FreshnessClass,
    Sli,
    SliceClock,
    SliCount,
    SliCounters,
    SliKey,
    data_freshness,
)
from mm2slo_core.topic_selection import TopicEpochs

FAULT, COUNTED_FROM, END = 300, 420, 600
POLL, COMMIT = 5, 60
HOLD = 60
"""Seconds until MM2FlowStopped fires."""
TIMEOUTS = StateTimeouts(stall_after=30.0, canary_deadline=60.0)
CLASS = FreshnessClass("default", 60.0)
FRESHNESS = SliKey(Sli.DATA_FRESHNESS, "default")
ROOT = Path(__file__).parents[3]
TABLE = ROOT / "docs" / "truth-table.md"
ALERTS = ROOT / "alerts" / "generated" / "prometheus" / "mm2slo-alerts.rules.yml"
AVAILABILITY_BURNS = "MM2ErrorBudgetBurn(availability)"
FRESHNESS_BURNS = "MM2ErrorBudgetBurn(data_freshness)"
DUPLICATES_BURN = "MM2ErrorBudgetBurn(uniqueness)"


@dataclass
class Partition:
    """One source partition, its position, and the exporter's state of it."""

    task: str
    end: int = 1000
    start: int = 0
    stable: int | None = None
    position: int = 1000
    history: ArrivalHistory = field(default_factory=ArrivalHistory)
    stall: StallWatch = field(default_factory=StallWatch)
    tail: DroppedTail = field(default_factory=DroppedTail)
    undecided: bool = False
    loss: CertainLoss = field(default_factory=CertainLoss)
    moved_to: int = 1000
    born_at: float = 0.0
    born_with: int = 1000
    lag: int | None = 0
    age: float | None = 0.0
    progress: PartitionProgress = PartitionProgress.IDLE
    progressed_at: float | None = None

    def timestamp(self, offset: int) -> float:
        return self.born_at + (offset - self.born_with) / 10


@dataclass
class World:
    """Both clusters, MM2 and the exporter; faults change its fields."""

    canaries_on: bool = True
    producing: bool = True
    running: set[str] = field(default_factory=lambda: {"A", "B"})
    connector_running: bool = True
    source_up: bool = True
    target_up: bool = True
    may_produce: bool = True
    may_read_source: bool = True
    may_read_target: bool = True
    exporter_up: bool = True
    transform_known: bool = False
    ready: bool = True
    seen: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.partitions = [Partition("A"), Partition("B")]
        self.ledger = CanaryLedger(CanaryRules(own_topic=True))
        self.counters = SliCounters([FRESHNESS])
        self.clock = SliceClock(15.0, 0.0)
        self.epochs = TopicEpochs()
        self.in_flight: list[int] = []
        self.dropped: Partition | None = None
        self.polled_at: float | None = None
        self.topic_id = "first"
        self.canary_start = 0
        self.canary_position = 0

    @property
    def readable(self) -> tuple[bool, bool]:
        return self.source_up and self.may_read_source, self.target_up and self.may_read_target

    def second(self, now: float) -> None:
        """Produce, replicate, send and receive canaries, then run the exporter."""
        if self.producing and self.source_up:
            for partition in self.partitions:
                partition.end += 10
        if self.exporter_up and self.canaries_on:
            self.send_canary(int(now))
        if self.source_up and self.target_up:
            self.replicate(now)
        if self.exporter_up and now % POLL == 0:
            self.poll(now)

    def replicate(self, now: float) -> None:
        for partition in self.partitions:
            if partition.task in self.running and partition is not self.dropped:
                partition.position = partition.end if partition.stable is None else partition.stable
        if "A" not in self.running:
            return
        self.canary_position = int(now) + 1
        if self.may_read_target and self.exporter_up:
            for sequence in self.in_flight:
                self.ledger.arrived(sequence, 0, now + 0.5)
            self.in_flight.clear()

    def send_canary(self, sequence: int) -> None:
        """Use the second as sequence and source offset."""
        self.ledger.scheduled(sequence, 0, float(sequence))
        if self.source_up and self.may_produce:
            self.ledger.produced(sequence, 0, sequence, float(sequence))
            self.in_flight.append(sequence)

    def poll(self, now: float) -> None:
        """Run one round of the exporter."""
        for cause, readable in (
            (UnobservableCause.SOURCE, self.source_up),
            (UnobservableCause.TARGET, self.readable[1]),
        ):
            (self.ledger.reachable if readable else self.ledger.unreachable)(cause, now)
        for partition in self.partitions:
            self.poll_partition(partition, now)
        if all(self.readable):
            self.polled_at = now
            self.ledger.position(0, self.canary_position, self.canary_start, target_read=True)
            if self.epochs.observe_id(self.topic_id):
                self.seen["recreations"] += 1
        self.ledger.tick(now)
        ages: list[float | None] = [partition.age for partition in self.partitions]
        self.counters.add_all(data_freshness(self.clock.due(now), {CLASS: ages}))

    def poll_partition(self, partition: Partition, now: float) -> None:
        """Update lag, age, stall and loss of one partition."""
        if not all(self.readable):
            partition.lag = partition.age = None
            partition.progress = PartitionProgress.UNKNOWN
            return
        end = partition.end if partition.stable is None else partition.stable
        lag = record_lag(end, partition.position, partition.start)
        partition.history.add(self.polled_at, now, end)
        partition.history.forget_below(min(partition.position, end))
        arrival = partition.history.arrived(partition.position)
        oldest = partition.timestamp(max(partition.position, partition.start))
        age = time_lag(now, lag, arrival, record_timestamp=oldest)
        partition.lag, partition.age = lag.records, age.seconds
        if self.transform_known and lag.records:
            self.observe_tail(partition, now, end)
        if partition.position > partition.moved_to:
            partition.progressed_at = now
        partition.moved_to = partition.position
        partition.progress = partition.stall.observe(
            now, partition.lag, partition.position, TIMEOUTS.stall_after
        )
        self.seen["lost"] += partition.loss.observe(now, partition.position, partition.start)
        if partition.stable is not None:
            held = open_transaction_records(partition.end, partition.stable)
            self.seen["open transaction"] = held or 0

    def observe_tail(self, partition: Partition, now: float, end: int) -> None:
        """Judge records that a transform may have dropped; running tasks commit once a minute."""
        any_task = now // COMMIT * COMMIT
        commits = TaskCommits(any_task if partition.task in self.running else 0.0, any_task)
        stall_after = TIMEOUTS.stall_after
        tail, position = partition.tail, partition.position
        if tail.observe(
            now, position, end, commits, stall_after=stall_after, commit_interval=COMMIT
        ):
            partition.lag, partition.age = 0, 0.0
        elif tail.is_undecided(now, TIMEOUTS.stall_after, COMMIT):
            partition.age, partition.undecided = None, True
            return
        partition.undecided = False

    def state(self, now: float) -> str:
        """Return `state (reason)`."""
        backlogs = [p for p in self.partitions if p.lag and not p.undecided]
        progress = [now - p.progressed_at for p in self.partitions if p.progressed_at is not None]
        stalled = [now - (p.stall.progress_at or 0.0) for p in backlogs]
        arrived = self.ledger.last_arrival_at
        verdict = flow_state(
            FlowEvidence(
                ready=self.ready,
                source_readable=self.readable[0],
                target_readable=self.readable[1],
                backlog=bool(backlogs) if all(self.readable) else None,
                progress_age=min(progress, default=None),
                stalled_for=max(stalled, default=None),
                source_moving=self.producing and self.source_up,
                canary_silence=self.ledger.silence(now),
                canary_arrival_age=None if arrived is None else now - arrived,
                connector_running=self.connector_running,
            ),
            TIMEOUTS,
        )
        return f"{verdict.name} ({verdict.reason})"


def set_to(**switches: object) -> Callable[[World, float], None]:
    def change(world: World, _now: float) -> None:
        for name, value in switches.items():
            setattr(world, name, value)

    return change


def restart_after_kill(world: World, now: float) -> None:
    """Restart MM2, which replicates the last five seconds before the kill again."""
    world.running = {"A", "B"}
    for sequence in range(FAULT - 5, FAULT):
        world.ledger.arrived(sequence, 0, now)


def exporter_returns(world: World, now: float) -> None:
    """Start a new exporter with the state from the clusters and the timeline."""
    died = float(FAULT - 1)
    world.exporter_up = True
    world.ledger = CanaryLedger(CanaryRules(own_topic=True))
    world.ledger.restore(
        PreviousRun(FAULT - 1, FAULT - 2, died, now, resumed_at=now, sending_since=now),
        [SentCanary(sequence, 0, sequence, float(sequence)) for sequence in range(200, FAULT)],
        [CanaryArrival(sequence, 0, now, died) for sequence in range(200, FAULT)],
    )


def overrun(world: World, _now: float) -> None:
    for partition in world.partitions:
        partition.start = partition.end - 100
    world.canary_start = 400
    world.in_flight = [sequence for sequence in world.in_flight if sequence >= 400]


def recreate(world: World, now: float) -> None:
    world.topic_id = "second"
    for partition in world.partitions:
        partition.end = partition.position = partition.start = partition.moved_to = 0
        partition.born_at, partition.born_with = now, 0
        partition.loss.source_recreated()


def add_partition(world: World, now: float) -> None:
    world.partitions.append(
        Partition("unassigned", end=0, position=0, moved_to=0, born_at=now, born_with=0)
    )
    world.seen["partitions behind"] = 1


def drop_records(world: World, now: float) -> None:
    """Two records arrive in the partition of task A, which a transform drops."""
    dropping = world.partitions[0]
    dropping.end += 2
    dropping.born_at, dropping.born_with = now, dropping.end - 2
    world.dropped = dropping


def open_transaction(world: World, _now: float) -> None:
    for partition in world.partitions:
        partition.stable = partition.end


@dataclass(frozen=True)
class Row:
    """Changes by second, and expected other values at the end."""

    changes: dict[int, tuple[Callable[[World, float], None], ...]]
    seen: dict[str, int] = field(default_factory=dict)


IDLE = set_to(producing=False)
NO_CANARIES = set_to(canaries_on=False)
KNOWN = set_to(transform_known=True)
STOP = set_to(running=set())
PAUSE = set_to(running=set(), connector_running=False)
ROWS = {
    "none": Row({}),
    "idle source": Row({0: (IDLE,)}),
    "MM2 stopped": Row({FAULT: (STOP,)}, {"stalled": 2, "pending": 301}),
    "MM2 paused": Row({FAULT: (PAUSE,)}, {"stalled": 2, "pending": 301}),
    "MM2 killed, restarted after 150 s": Row(
        {FAULT: (STOP,), 450: (restart_after_kill,)}, {"duplicates": 5, "late": 91}
    ),
    "MM2 stopped, idle source": Row({0: (IDLE,), FAULT: (STOP,)}, {"pending": 301}),
    "MM2 stopped, no canaries": Row({0: (NO_CANARIES,), FAULT: (STOP,)}, {"stalled": 2}),
    "MM2 paused, idle source, no canaries": Row({0: (IDLE, NO_CANARIES), FAULT: (PAUSE,)}),
    "MM2 killed, idle source, no canaries": Row({0: (IDLE, NO_CANARIES), FAULT: (STOP,)}),
    "task B of A and B failed": Row({FAULT: (set_to(running={"A"}),)}, {"stalled": 1}),
    "task A of A and B failed": Row(
        {FAULT: (set_to(running={"B"}),)}, {"stalled": 1, "pending": 301}
    ),
    "source down": Row({FAULT: (set_to(source_up=False),)}),
    "target down": Row({FAULT: (set_to(target_up=False),)}, {"pending": 301}),
    "exporter restarted, down for 150 s": Row(
        {FAULT: (set_to(exporter_up=False),), 450: (exporter_returns,)}
    ),
    "exporter just started": Row({FAULT: (set_to(ready=False),)}),
    "produce denied on the source": Row({FAULT: (set_to(may_produce=False),)}),
    "read denied on the source": Row({FAULT: (set_to(may_read_source=False),)}),
    "read denied on the target": Row({FAULT: (set_to(may_read_target=False),)}, {"pending": 301}),
    # Each partition: replicated up to 4000, produced up to 6000, of which the last 100 remain.
    "retention overran a stopped MM2": Row(
        {FAULT: (STOP,), 500: (overrun,)},
        {"stalled": 2, "lost": 2 * (6000 - 100 - 4000), "expired": 100, "pending": 201},
    ),
    "topic re-created on the source": Row({FAULT: (recreate,)}, {"recreations": 1}),
    "partition added on the source": Row(
        {FAULT: (add_partition,)}, {"stalled": 1, "partitions behind": 1}
    ),
    "last records dropped by a known transform, idle source": Row(
        {0: (IDLE, KNOWN), FAULT: (drop_records,)}
    ),
    "last records dropped by an unknown transform, idle source": Row(
        {0: (IDLE,), FAULT: (drop_records,)}, {"stalled": 1}
    ),
    "task B of A and B hangs, a transform drops records": Row(
        {0: (KNOWN,), FAULT: (set_to(running={"A"}),)}, {"stalled": 1}
    ),
    "open transaction, MM2 reads committed": Row(
        {FAULT: (open_transaction,)}, {"open transaction": 3010}
    ),
}


def cell(before: SliCount, after: SliCount) -> str:
    """Return the table cell for the events counted in between."""
    good, total, unknown = (new - old for new, old in zip(after, before, strict=True))
    settled = "partly" if 0 < good < total else "good" if good else "bad" if total else ""
    return " ".join(filter(None, (settled, "unknown" if unknown else ""))) or "-"


class Outcome(NamedTuple):
    """The cells of a row as computed, and other values."""

    cells: dict[str, str]
    duplicates: str
    seen: Counter[str]


def simulate(row: Row) -> Outcome:
    world = World()
    marks: dict[str, SliCount] = {}
    indicators = (Sli.AVAILABILITY, Sli.COMPLETENESS, Sli.UNIQUENESS)

    def now_counted() -> dict[str, SliCount]:
        counted = {sli.value: world.ledger.counters[SliKey(sli)] for sli in indicators}
        return counted | {"data_freshness": world.counters[FRESHNESS]}

    for now in range(END + 1):
        for change in row.changes.get(now, ()):
            change(world, float(now))
            if change is exporter_returns:
                marks |= {name: SliCount() for name in now_counted() if name != "data_freshness"}
        if now == COUNTED_FROM:
            marks = now_counted()
        world.second(float(now))
        world.seen["stopped"] += world.state(float(now)).startswith("stopped")
    counted_cells = {name: cell(marks[name], count) for name, count in now_counted().items()}
    totals = world.ledger.totals
    world.seen["stalled"] = sum(p.progress is PartitionProgress.STALLED for p in world.partitions)
    world.seen.update(duplicates=totals.duplicates, late=totals.late, expired=totals.expired)
    world.seen["pending"] = world.ledger.pending
    assert totals.lost == 0  # in these rows only retention loses records
    cells = {
        "State": world.state(float(END)),
        "Availability": counted_cells["availability"],
        "Completeness": counted_cells["completeness"],
        "Data freshness": counted_cells["data_freshness"],
    }
    return Outcome(cells, counted_cells["uniqueness"], +world.seen)


def table() -> dict[str, dict[str, str]]:
    """Return the first table of the document: fault -> column -> cell."""
    lines = TABLE.read_text().split("\n\n| Fault")[1].split("\n\n")[0].splitlines()
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0]: dict(zip(head, row[1:], strict=True)) for row in rows}


def test_document_and_test_have_the_same_faults() -> None:
    assert list(table()) == list(ROWS)


@pytest.mark.parametrize("fault", ROWS)
def test_row_equals_result_of_functions(fault: str) -> None:
    documented = table()[fault]
    outcome = simulate(ROWS[fault])
    assert outcome.cells == {name: documented[name] for name in outcome.cells}
    for name, value in ROWS[fault].seen.items():
        assert outcome.seen[name] == value, name


@pytest.mark.parametrize("fault", ROWS)
def test_alerts_follow_from_state_and_slis(fault: str) -> None:
    documented = table()[fault]
    alerts = documented_alerts(documented)
    outcome = simulate(ROWS[fault])
    indicators = [cell for name, cell in outcome.cells.items() if name != "State"]
    burning = {"bad", "partly"}
    stopped = outcome.seen["stopped"] > HOLD
    due = {
        "MM2FlowStopped": stopped,
        # A stop has its own alert.
        AVAILABILITY_BURNS: outcome.cells["Availability"] in burning and not stopped,
        FRESHNESS_BURNS: outcome.cells["Data freshness"] in burning and not stopped,
        DUPLICATES_BURN: outcome.duplicates in burning,
        # A few minutes of an hour keep the coverage above its threshold.
        "MM2SLOCoverageLow": "unknown" in indicators and "MM2ClusterUnreachable" not in alerts,
        "MM2RecordsLost": outcome.seen["lost"] > 0,
        "MM2TopicRecreated": outcome.seen["recreations"] > 0,
        "MM2PartitionDrift": outcome.seen["partitions behind"] > 0,
        "MM2TransactionStuck": outcome.seen["open transaction"] > 0,
    }
    assert alerts & due.keys() == {name for name, is_due in due.items() if is_due}
    if "MM2PartitionStalled" in alerts:
        assert outcome.seen["stalled"] > 0


def documented_alerts(cells: Mapping[str, str]) -> set[str]:
    """Return the alerts of a row."""
    return set(cells["Alerts"].removeprefix("-").split())


def test_alerts_of_table_exist_and_are_described() -> None:
    generated = {
        rule["alert"]: rule["labels"]["severity"]
        for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }
    in_rows = set[str]().union(*(documented_alerts(cells) for cells in table().values()))
    described = dict(
        [cell.strip() for cell in line.split("|")[1:4:2]]
        for line in TABLE.read_text().split("\n## Alerts\n")[1].splitlines()
        if line.startswith("| MM2")
    )
    assert in_rows == set(described)
    for alert, severities in described.items():
        name, _, sli = alert.partition("(")
        assert generated[name] in severities
        assert not sli or sli.rstrip(")") in set(Sli)


def test_stop_is_detected_within_30_seconds_and_one_poll() -> None:
    world = World()
    states: dict[int, str] = {}
    for now in range(FAULT + 61):
        world.running = {"A", "B"} if now < FAULT else set()
        world.second(float(now))
        states[now] = world.state(float(now))
    assert states[FAULT].startswith("running")
    first = min(now for now, state in states.items() if state.startswith("stopped"))
    assert FAULT + 25 <= first <= FAULT + 30 + POLL
