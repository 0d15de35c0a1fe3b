"""Evaluating only what changed gives the same reports as evaluating everything."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from flow_observations import Log, Scene, checkpoint_connector, flow_config, past_poll
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.group_readiness import NewestCheckpoint
from mm2slo_core.records.timeline_record import PollTimes
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import NewestSync, Observation, TailProbe
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.state.flow_tracker import FlowTracker

PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("users", 0)]
TOPICS = ("orders", "users")
BY_TIME = {"cleanup.policy": "delete", "retention.ms": "600000", "retention.bytes": "-1"}
BY_SIZE = {**BY_TIME, "retention.bytes": "1000"}


def copy_of(partition: TopicPartition) -> TopicPartition:
    return TopicPartition(f"us.{partition.topic}", partition.partition)


@dataclass
class World:
    """Two clusters that actions change; `look` reads a round, like the exporter's readers."""

    scene: Scene = field(default_factory=Scene)
    at: float = 1000.0
    commits: dict[TopicPartition, int] = field(default_factory=dict)
    checkpoints: dict[TopicPartition, NewestCheckpoint] = field(default_factory=dict)
    target_commits: dict[TopicPartition, int] = field(default_factory=dict)
    read_at: float | None = 990.0
    _plan: FlowPlan = field(default_factory=FlowPlan)

    def __post_init__(self) -> None:
        for topic in TOPICS:
            self.scene.add(topic, sum(partition.topic == topic for partition in PARTITIONS))
        for partition, log in self.scene.logs.items():
            log.live(5, 5)
            self.commits[partition] = 4
            self.checkpoints[copy_of(partition)] = NewestCheckpoint(4, 4, 980.0)
        self.scene.source["topic_ids"] = dict.fromkeys(TOPICS, "id-1")
        self.scene.source["retention_configs"] = dict.fromkeys(TOPICS, BY_TIME)
        self.scene.internals["states"] = {("MirrorSourceConnector", 0): "RUNNING"}

    def look(self, elapsed: float) -> Observation:
        self.at += elapsed
        scene = self.scene
        scene.source["group_offsets"] = {"app": dict(self.commits)}
        scene.source["groups_read_at"] = {} if self.read_at is None else {"app": self.read_at}
        scene.target["group_offsets"] = {"app": dict(self.target_commits)}
        scene.internals["checkpoints"] = {"app": dict(self.checkpoints)}
        seen = scene.look(self.at)
        if self._plan.pairs != seen.plan.pairs:
            self._plan = seen.plan
        return replace(seen, plan=self._plan)


def append(world: World, _partition: TopicPartition, log: Log, count: int) -> None:
    log.end = (log.end or 0) + count


def replicate(world: World, _partition: TopicPartition, log: Log, count: int) -> None:
    log.target_end = (log.target_end or 0) + count


def follow(world: World, _partition: TopicPartition, log: Log, _count: int) -> None:
    """Replicate everything, one for one."""
    log.target_end = log.end


def commit(world: World, _partition: TopicPartition, log: Log, _count: int) -> None:
    log.committed = (log.end or 0) - 1


def sync(world: World, _partition: TopicPartition, log: Log, _count: int) -> None:
    log.sync = NewestSync((log.end or 1) - 1, (log.target_end or 1) - 1, world.at)


def remove(world: World, _partition: TopicPartition, log: Log, count: int) -> None:
    log.start = min((log.start or 0) + count, log.end or 0)


def truncate(world: World, _partition: TopicPartition, log: Log, count: int) -> None:
    log.end = max((log.end or 0) - count, log.start or 0)


def trim_copy(world: World, _partition: TopicPartition, log: Log, count: int) -> None:
    log.target_start = min((log.target_start or 0) + count, log.target_end or 0)


def probe(world: World, _partition: TopicPartition, log: Log, count: int) -> None:
    through = log.end or 0
    first = None if count == 1 else through
    log.probe = TailProbe(max(0, through - count), through, first, None if first is None else 950.0)


def lose_end(world: World, _partition: TopicPartition, log: Log, _count: int) -> None:
    log.end = 5 if log.end is None else None


def lose_copy(world: World, _partition: TopicPartition, log: Log, _count: int) -> None:
    log.target_end = 5 if log.target_end is None else None


def toggle_source(world: World, _partition: TopicPartition, _log: Log, _count: int) -> None:
    world.scene.source_readable = not world.scene.source_readable


def toggle_target(world: World, _partition: TopicPartition, _log: Log, _count: int) -> None:
    world.scene.target_readable = not world.scene.target_readable


def toggle_copy(world: World, partition: TopicPartition, _log: Log, _count: int) -> None:
    world.scene.missing_copies ^= {partition.topic}


def toggle_tasks(world: World, _partition: TopicPartition, _log: Log, count: int) -> None:
    state = "RUNNING" if count == 1 else "FAILED"
    world.scene.internals["states"] = {("MirrorSourceConnector", 0): state}


def toggle_wait(world: World, _partition: TopicPartition, _log: Log, count: int) -> None:
    world.scene.internals["waiting_for"] = () if count == 1 else ("mm2-offsets",)


def toggle_group_sync(world: World, _partition: TopicPartition, _log: Log, count: int) -> None:
    world.scene.internals["connectors"] = checkpoint_connector(syncs_group_offsets=count > 1)


def assign(world: World, partition: TopicPartition, _log: Log, count: int) -> None:
    world.scene.internals["assigned"] = frozenset(PARTITIONS) - {partition} if count > 1 else None


def recreate(world: World, partition: TopicPartition, log: Log, count: int) -> None:
    ids = {**world.scene.source["topic_ids"], partition.topic: f"id-{world.at}"}
    world.scene.source["topic_ids"] = ids
    log.start, log.end = 0, count


def limit_size(world: World, partition: TopicPartition, _log: Log, count: int) -> None:
    configs = world.scene.source["retention_configs"]
    limits = BY_SIZE if count > 1 else BY_TIME
    world.scene.source["retention_configs"] = {**configs, partition.topic: limits}


def commit_group(world: World, partition: TopicPartition, log: Log, count: int) -> None:
    world.commits[partition] = max(0, (log.end or 0) - count + 1)


def read_groups(world: World, _partition: TopicPartition, _log: Log, _count: int) -> None:
    world.read_at = world.at


def checkpoint(world: World, partition: TopicPartition, log: Log, count: int) -> None:
    offset = max(0, (log.target_end or 0) - count)
    world.checkpoints[copy_of(partition)] = NewestCheckpoint(offset, offset, world.at)


def commit_copy(world: World, partition: TopicPartition, log: Log, count: int) -> None:
    world.target_commits[copy_of(partition)] = max(0, (log.target_end or 0) - count)


ACTIONS: tuple[Callable[[World, TopicPartition, Log, int], None], ...] = (
    *(append, replicate, follow, commit, sync, remove, truncate, trim_copy, probe),
    *(lose_end, lose_copy, toggle_source, toggle_target, toggle_copy, toggle_tasks, toggle_wait),
    *(toggle_group_sync, assign, recreate, limit_size, commit_group, read_groups, checkpoint),
    commit_copy,
)
ACTION = st.tuples(st.sampled_from(ACTIONS), st.sampled_from(PARTITIONS[:2]), st.integers(1, 3))
ROUND = st.sampled_from((5.0, 5.25, 31.0, 70.0))
STEPS = st.lists(
    st.tuples(st.lists(ACTION, min_size=1, max_size=2), st.lists(ROUND, min_size=2, max_size=3)),
    min_size=4,
    max_size=12,
)


def tracker(flow: dict[str, Any], *, shared_target: bool) -> FlowTracker:
    return FlowTracker(
        flow_config(**flow),
        carrier=CanaryCarrier.OFF,
        shared_target=shared_target,
        started_at=1000.0,
    )


@pytest.mark.parametrize(
    ("flow", "shared_target"),
    [
        pytest.param({}, False, id="live positions"),
        pytest.param({"exactly_once": True}, False, id="committed positions"),
        pytest.param({}, True, id="shared target"),
        pytest.param({"engine": "dual-produce"}, False, id="another engine"),
    ],
)
@given(steps=STEPS)
def test_reports_of_changed_topics_equal_reports_of_all_topics(
    flow: dict[str, Any],
    shared_target: bool,
    steps: list[tuple[list[tuple[Any, TopicPartition, int]], list[float]]],
) -> None:
    world = World()
    sparing = tracker(flow, shared_target=shared_target)
    thorough = tracker(flow, shared_target=shared_target)
    for actions, rounds in steps:
        for act, partition, count in actions:
            act(world, partition, world.scene.logs[partition], count)
        for elapsed in rounds:
            seen = world.look(elapsed)
            thorough.topics.judge_all_next()
            thorough._groups.forget()
            assert sparing.update(seen) == thorough.update(seen)
            assert sparing.topics.unsaved_losses() == thorough.topics.unsaved_losses()
        world.scene.save_losses(sparing)


def test_unchanged_topics_and_groups_keep_their_states() -> None:
    world = World()
    orders = world.scene.logs[PARTITIONS[0]]
    flow = tracker({}, shared_target=False)
    reports = [flow.update(world.look(5.0)), flow.update(world.look(5.0))]
    orders.end = 6
    reports += [flow.update(world.look(5.0)), flow.update(world.look(5.0))]
    orders.target_end = 6
    reports += [flow.update(world.look(5.0)), flow.update(world.look(5.0))]

    def kept(number: int) -> list[bool]:
        topics = zip(reports[number - 1].topics, reports[number].topics, strict=True)
        groups = zip(reports[number - 1].groups, reports[number].groups, strict=True)
        return [old is new for old, new in (*topics, *groups)]

    assert kept(1) == [True, True, True]
    assert kept(2) == [False, True, False]
    assert kept(3) == [False, True, False]  # the lag in seconds grows
    assert kept(4) == [False, True, False]
    assert kept(5) == [True, True, True]
    assert [topic.at_rest for topic in reports[5].topics] == [True, True]


def test_history_of_one_topic_keeps_the_states_of_others() -> None:
    world = World()
    world.scene.logs[PARTITIONS[0]].end = 6
    flow = tracker({}, shared_target=False)
    before = flow.update(world.look(5.0))
    flow.topics.add_history({"orders": [past_poll("id-1", 5, PollTimes(899.9, 900.0))]})
    after = flow.update(world.look(5.0))
    assert [each.partitions[0].lag_seconds for each in before.topics] == [None, 0.0]
    assert after.topics[0].partitions[0].lag_seconds == pytest.approx(110.1)
    assert after.topics[1] is before.topics[1]


@pytest.mark.parametrize(
    ("checkpoint_at", "read_at", "synced", "readable", "kept"),
    [
        pytest.param(980.0, 990.0, False, True, True, id="older than commits"),
        pytest.param(990.0, 990.0, False, True, False, id="as new as commits"),
        pytest.param(995.0, 990.0, False, True, False, id="newer than commits"),
        pytest.param(980.0, None, False, True, False, id="commits of unknown age"),
        pytest.param(995.0, 990.0, False, False, True, id="commits unreadable"),
        pytest.param(884.75, 990.0, True, True, True, id="synced, after its grace period"),
        pytest.param(885.0, 990.0, True, True, False, id="synced, in its grace period"),
        pytest.param(884.75, None, True, False, True, id="synced, commits unreadable"),
        pytest.param(980.0, 990.0, True, False, False, id="synced, fresh, commits unreadable"),
        pytest.param(None, None, True, True, True, id="no checkpoint"),
    ],
)
def test_group_keeps_its_state_unless_time_may_change_it(
    checkpoint_at: float | None, read_at: float | None, synced: bool, readable: bool, kept: bool
) -> None:
    world = World(read_at=read_at)
    world.checkpoints = {
        copy: NewestCheckpoint(4, 4, checkpoint_at, checkpoint_at)
        for copy in world.checkpoints
        if checkpoint_at is not None
    }
    world.scene.internals["connectors"] = checkpoint_connector(syncs_group_offsets=synced)
    world.scene.source["unreadable_groups"] = frozenset(() if readable else ("app",))
    flow = tracker({}, shared_target=False)
    (first,) = flow.update(world.look(5.0)).groups
    (second,) = flow.update(world.look(5.0)).groups
    assert (first is second) == kept
