"""Records at the end of a partition that a transform of the connector drops, over time."""

from dataclasses import dataclass, field

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.flow_state import (
    FlowStateName,
    PartitionProgress,
    StateReason,
    TaskCommits,
)
from mm2slo_core.indicators.sli_counters import Sli, SliCount, SliKey
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import HeartbeatSeen
from mm2slo_exporter.flow_observation import NewestSync
from mm2slo_exporter.state.flow_report import FlowReport, PartitionState
from mm2slo_exporter.state.flow_tracker import FlowTracker

ORDERS, PAY = TopicPartition("orders", 0), TopicPartition("pay", 0)
FLUSH = 60.0
FRESHNESS = SliKey(Sli.DATA_FRESHNESS, "default")


@dataclass
class Flow:
    """A flow whose heartbeats arrive; orders belongs to task 0, pay to task 1.

    Tasks that are *committing* commit every minute.
    """

    committing: set[int] = field(default_factory=lambda: {0, 1})
    scene: Scene = field(default_factory=Scene)
    tracker: FlowTracker = field(
        default_factory=lambda: FlowTracker(
            flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
        )
    )
    reports: list[FlowReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = 0.0
        self.commits = {0: 0.0, 1: 0.0}
        for topic in (ORDERS.topic, PAY.topic):
            log = self.scene.add(topic)
            log.end, log.target_end, log.committed = 100, 100, 99
            log.sync = NewestSync(99, 99, 0.0)
            self.scene.may_drop.add(topic)
        self.scene.add("heartbeats", role=TopicRole.HEARTBEATS)
        tasks = {ORDERS: 0, PAY: 1}
        self.scene.internals["task_commits"] = lambda each: TaskCommits(
            self.commits.get(tasks[each]), max(self.commits.values(), default=None)
        )
        self.run(90)

    def run(self, seconds: float, *, arriving: tuple[TopicPartition, ...] = ()) -> FlowReport:
        """Run for *seconds* in rounds of 5; a record arrives in *arriving* each round."""
        until = self.now + seconds
        while self.now < until:
            self.now += 5.0
            for partition in arriving:
                self.add(partition, 1)
            for task in self.committing:
                self.commits[task] = self.now // FLUSH * FLUSH
            beat = HeartbeatSeen("us->eu", "eu", self.now - 0.5, self.now - 0.2, replayed=False)
            self.reports.append(self.tracker.update(self.scene.look(self.now, beat)))
        return self.reports[-1]

    def add(self, partition: TopicPartition, count: int) -> None:
        """Produce records that are not replicated."""
        log = self.scene.logs[partition]
        assert log.end is not None
        log.end += count

    def states(self) -> set[tuple[FlowStateName, str]]:
        return {(each.state, each.state_reason) for each in self.reports[2:]}

    def partition(self, of: TopicPartition) -> PartitionState:
        topic = next(t for t in self.reports[-1].topics if t.pair.source == of.topic)
        return topic.partitions[of.partition]

    def bad_slices(self) -> int:
        count = self.tracker.slis()[FRESHNESS]
        return count.total - count.good


STALLED = (FlowStateName.STOPPED, StateReason.BACKLOG_STALLED)


def test_dropped_records_at_the_end_of_an_idle_partition_neither_stop_nor_burn() -> None:
    flow = Flow()
    flow.add(ORDERS, 2)
    flow.run(600)
    assert {name for name, _reason in flow.states()} <= {
        FlowStateName.RUNNING,
        FlowStateName.IDLE,
        FlowStateName.UNKNOWN,
    }
    found = flow.partition(ORDERS)
    assert (found.quality, found.next_offset, found.lag_records, found.lag_seconds) == (
        PositionQuality.FILTERED,
        102,
        0,
        0.0,
    )
    assert flow.reports[-1].state is FlowStateName.IDLE
    assert all(not report.stalled for report in flow.reports)
    assert flow.bad_slices() == 0


def test_dropped_records_that_trickle_into_an_idle_partition_do_not_stop_the_flow() -> None:
    flow = Flow()
    for _ in range(4):
        flow.add(ORDERS, 1)
        flow.run(300)
    assert STALLED not in flow.states()
    assert flow.partition(ORDERS).next_offset == 104


def test_removed_records_that_were_dropped_are_no_loss() -> None:
    flow = Flow()
    flow.add(ORDERS, 2)
    flow.run(300)
    flow.scene.logs[ORDERS].start = 102
    report = flow.run(300)
    assert sum(t.lost_records_total + t.pending_lost_records for t in report.topics) == 0


def test_records_after_dropped_ones_are_lag_until_they_are_replicated() -> None:
    flow = Flow()
    flow.add(ORDERS, 2)
    flow.run(300)
    flow.add(ORDERS, 1)
    flow.run(5)
    assert flow.partition(ORDERS).lag_records == 3
    log = flow.scene.logs[ORDERS]
    log.sync, log.target_end = NewestSync(102, 100, flow.now), 101
    flow.run(5)
    found = flow.partition(ORDERS)
    assert (found.lag_records, found.quality) == (0, PositionQuality.LIVE)


def test_growing_lag_of_all_partitions_is_a_stop_although_heartbeats_arrive() -> None:
    flow = Flow()
    flow.run(60, arriving=(ORDERS, PAY))
    assert (flow.reports[-1].state, flow.reports[-1].state_reason) == STALLED
    assert set(flow.reports[-1].stalled) == {ORDERS, PAY}


def test_records_at_the_end_without_a_dropping_transform_are_a_stop() -> None:
    flow = Flow()
    flow.scene.may_drop.clear()
    flow.tracker.topics.judge_all_next()
    flow.add(ORDERS, 2)
    flow.run(60)
    assert (flow.reports[-1].state, flow.reports[-1].state_reason) == STALLED


def test_dropped_records_of_a_task_that_replicates_nothing_else_do_not_stop_the_flow() -> None:
    flow = Flow(committing={0})
    flow.add(PAY, 2)
    flow.run(600)
    assert flow.partition(PAY).quality is PositionQuality.FILTERED
    assert STALLED not in flow.states()
    assert flow.bad_slices() == 0


def test_commits_of_several_tasks_within_one_interval_count_once() -> None:
    flow = Flow()
    flow.run(30)
    flow.committing.clear()
    flow.add(ORDERS, 2)
    for task, seconds in ((0, 5.0), (1, 10.0), (0, 15.0), (1, 20.0)):
        flow.commits[task] = flow.now + seconds
        flow.run(5)
    assert flow.partition(ORDERS).lag_records == 2


def test_more_records_of_a_task_that_commits_nothing_are_a_backlog() -> None:
    flow = Flow(committing={0})
    flow.add(PAY, 2)
    flow.run(300)
    flow.add(PAY, 1)
    flow.run(300)
    found = flow.partition(PAY)
    assert (found.lag_records, found.progress) == (3, PartitionProgress.STALLED)
    assert (flow.reports[-1].state, flow.reports[-1].state_reason) == STALLED


def test_growing_lag_of_a_hung_task_stalls_at_once_beside_dropped_records_of_another() -> None:
    flow = Flow()
    flow.add(ORDERS, 2)
    flow.run(300)
    flow.committing = {0}
    report = flow.run(60, arriving=(PAY,))
    assert flow.partition(ORDERS).quality is PositionQuality.FILTERED
    assert report.stalled == (PAY,)
    assert (report.state, report.state_reason) == STALLED


@pytest.mark.parametrize("topic", [ORDERS, PAY])
def test_dropped_records_count_as_lag_while_their_task_has_not_committed_twice(
    topic: TopicPartition,
) -> None:
    flow = Flow()
    flow.add(topic, 3)
    flow.run(60)
    found = flow.partition(topic)
    assert (found.lag_records, found.lag_seconds, found.progress) == (
        3,
        None,
        PartitionProgress.MOVING,
    )
    assert flow.tracker.slis()[FRESHNESS] != SliCount()
