"""Failover readiness of consumer groups."""

import pytest
from flow_observations import Scene, checkpoint_connector, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.group_readiness import Blocked, BlockReason, NewestCheckpoint
from mm2slo_core.offset_translation import SyncRuns
from mm2slo_core.topic_selection import SyncedSettings
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import NewestSync, Observation
from mm2slo_exporter.state.failover_readiness import GroupJudge, group_offsets
from mm2slo_exporter.state.flow_report import GroupState, TopicState, UnjudgedGroups
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.state.partition_reading import FlowRules
from mm2slo_exporter.state.topic_tracker import TopicTracker

PARTITION, COPY = TopicPartition("orders", 0), TopicPartition("us.orders", 0)
RULES = FlowRules(
    stall_after=30.0,
    flush_interval=60.0,
    exactly_once=False,
    shared_target=False,
    reads_committed=False,
)


@pytest.fixture
def scene() -> Scene:
    """Orders is replicated up to 100; app has committed 90, and its checkpoint is at 80."""
    made = Scene()
    made.add("orders").live(100, 100)
    made.source["group_offsets"] = {"app": {PARTITION: 90}}
    made.internals["checkpoints"] = {"app": {COPY: NewestCheckpoint(80, 80, 950.0)}}
    return made


def read(scene: Scene, at: float = 1000.0) -> tuple[Observation, list[TopicState]]:
    seen = scene.look(at)
    settings = SyncedSettings(())
    return seen, [TopicTracker().judge(seen, pair, RULES, settings) for pair in seen.plan.pairs]


def judge(scene: Scene) -> tuple[GroupState, ...]:
    return GroupJudge(flow_config()).judge(*read(scene))


def reasons(scene: Scene) -> list[BlockReason]:
    (state,) = judge(scene)
    return [blocked.reason for blocked in state.readiness.blocked]


def test_ready_group_has_checkpoint_lag_and_redelivery(scene: Scene) -> None:
    (state,) = judge(scene)
    assert (state.group, state.checkpoint_at) == ("app", 950.0)
    assert state.checkpoint_lag_by_topic == {"orders": 10}
    readiness = state.readiness
    assert readiness.ready
    assert readiness.checkpoint_lag == 10
    # The copy is dense up to its head: exactly the records from 80 to 90 are redelivered.
    assert (readiness.redelivery_lower, readiness.redelivery_upper) == (10, 10)


def test_groups_with_commits_on_replicated_topics_are_ordered_by_name(scene: Scene) -> None:
    other = TopicPartition("not-copied", 0)
    scene.source["group_offsets"] = {
        "b": {PARTITION: 1},
        "none": {other: 5},
        "a": {PARTITION: 2, other: 3},
    }
    found = judge(scene)
    assert [state.group for state in found] == ["a", "b"]
    assert [len(state.readiness.partitions) for state in found] == [1, 1]


def test_checkpoint_lag_is_summed_by_topic(scene: Scene) -> None:
    scene.add("pay", partitions=2)
    commits = {PARTITION: 90}
    marks = {COPY: NewestCheckpoint(80, 80, 950.0)}
    for number in range(2):
        log = scene.logs[TopicPartition("pay", number)]
        log.live(50, 50)
        commits[TopicPartition("pay", number)] = 40
        marks[TopicPartition("us.pay", number)] = NewestCheckpoint(37, 37, 960.0 + number)
    scene.source["group_offsets"] = {"app": commits}
    scene.internals["checkpoints"] = {"app": marks}
    (state,) = judge(scene)
    assert state.checkpoint_lag_by_topic == {"orders": 10, "pay": 6}
    assert state.checkpoint_at == 961.0


def test_group_of_stopped_flow_keeps_its_verdict(scene: Scene) -> None:
    flow = FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
    )
    flow.update(scene.look(1000.0))
    scene.internals["states"] = {("MirrorSourceConnector", 0): "FAILED"}
    scene.logs[PARTITION].end = 150
    flow.update(scene.look(1005.0))
    report = flow.update(scene.look(1100.0))
    assert report.state is FlowStateName.STOPPED
    (state,) = report.groups
    assert state.readiness.ready


def test_group_without_checkpoint_is_blocked_with_reason_from_syncs(scene: Scene) -> None:
    scene.internals["checkpoints"] = {}
    assert reasons(scene) == [BlockReason.NO_CHECKPOINT]
    (log,) = scene.logs.values()
    log.sync = log.sync._replace(upstream=95, downstream=95) if log.sync else None
    assert reasons(scene) == [BlockReason.BEHIND_OLDEST_SYNC]
    log.sync = None
    assert reasons(scene) == [BlockReason.NO_OFFSET_SYNC]


def test_group_is_judged_again_after_restart_that_forgets_offset_syncs(scene: Scene) -> None:
    scene.internals["checkpoints"] = {}
    groups = GroupJudge(flow_config())
    (state,) = groups.judge(*read(scene))
    assert [each.reason for each in state.readiness.blocked] == [BlockReason.NO_CHECKPOINT]
    runs = SyncRuns()
    runs.add(95, 95)
    scene.internals |= {"translation_restarted_at": 990.0, "offset_map": lambda _partition: runs}
    (state,) = groups.judge(*read(scene))
    assert [each.reason for each in state.readiness.blocked] == [BlockReason.BEHIND_OLDEST_SYNC]


def test_group_with_missing_copy_is_blocked(scene: Scene) -> None:
    scene.missing_copies.add("orders")
    assert reasons(scene) == [BlockReason.TARGET_TOPIC_MISSING]
    scene.target["topics"] = {"us.orders": 0}
    assert reasons(scene) == [BlockReason.TARGET_PARTITIONS_MISSING]
    scene.target["topics"] = {"us.orders": 1}  # its leader is down
    assert reasons(scene) == [BlockReason.TARGET_UNREADABLE]


def test_group_is_judged_by_last_target_offsets_while_unreadable(scene: Scene) -> None:
    scene.look(995.0)
    scene.target_readable = False
    (state,) = judge(scene)
    assert state.readiness.ready
    assert state.readiness.checkpoint_lag == 10


class SourceAway:
    """A group judged while the source was readable, and the scene after it went away."""

    def __init__(self, scene: Scene) -> None:
        scene.source["groups_read_at"] = {"app": 990.0}
        self._scene = scene
        self._judge = GroupJudge(flow_config())
        self._trackers = {name: TopicTracker() for name in scene.roles}
        (self.before,) = self.judge(1000.0)
        scene.source_readable = False

    def judge(self, at: float) -> tuple[GroupState, ...]:
        seen, settings = self._scene.look(at), SyncedSettings(())
        topics = [
            self._trackers[pair.source].judge(seen, pair, RULES, settings)
            for pair in seen.plan.pairs
        ]
        return self._judge.judge(seen, topics)


def test_group_keeps_verdict_and_exact_redelivery_while_source_is_away(scene: Scene) -> None:
    # The head, not an offset sync, brackets the commit: it needs the source as last read.
    away = SourceAway(scene)
    assert away.before.readiness.ready
    (state,) = away.judge(1600.0)
    assert state.readiness == away.before.readiness
    assert (state.readiness.redelivery_lower, state.readiness.redelivery_upper) == (10, 10)
    assert state.commits_at == 990.0


def test_group_of_empty_partition_stays_ready_while_source_is_away(scene: Scene) -> None:
    scene.add("empty").live(0, 0)
    scene.source["group_offsets"] = {"app": {PARTITION: 90, TopicPartition("empty", 0): 0}}
    away = SourceAway(scene)
    assert away.before.readiness.ready
    (state,) = away.judge(1600.0)
    assert state.readiness.blocked == ()


def test_group_is_judged_by_target_as_it_is_while_source_is_away(scene: Scene) -> None:
    away = SourceAway(scene)
    scene.logs[PARTITION].target_start = 85
    (state,) = away.judge(1600.0)
    assert [each.reason for each in state.readiness.blocked] == [BlockReason.TARGET_OFFSET_EXPIRED]
    scene.missing_copies.add("orders")
    (state,) = away.judge(1605.0)
    assert [each.reason for each in state.readiness.blocked] == [BlockReason.TARGET_TOPIC_MISSING]


def test_group_without_readable_commits_is_blocked_and_keeps_their_age(scene: Scene) -> None:
    away = SourceAway(scene)
    scene.source_readable = True
    scene.source["unreadable_groups"] = frozenset({"app"})
    (state,) = away.judge(1600.0)
    assert [each.reason for each in state.readiness.blocked] == [BlockReason.SOURCE_UNREADABLE]
    assert state.commits_at == 990.0


@pytest.mark.parametrize(
    ("commit", "active", "expected"),
    [
        (80, False, []),
        (79, False, []),
        (91, False, [BlockReason.WOULD_SKIP_RECORDS]),
        (None, False, [BlockReason.NOT_SYNCED_YET]),
        (79, True, [BlockReason.TARGET_GROUP_ACTIVE]),
        (91, True, [BlockReason.TARGET_GROUP_ACTIVE]),
    ],
)
def test_synced_group_offsets_are_compared_with_target_commits(
    scene: Scene,
    commit: int | None,
    active: bool,
    expected: list[BlockReason],
) -> None:
    scene.internals["connectors"] = checkpoint_connector(syncs_group_offsets=True)
    scene.internals["checkpoints"] = {"app": {COPY: NewestCheckpoint(80, 80, 800.0)}}
    scene.target["group_offsets"] = {} if commit is None else {"app": {COPY: commit}}
    scene.target["group_states"] = {"app": "stable" if active else "empty"}
    assert reasons(scene) == expected


def test_target_commit_is_compared_with_commits_that_were_read_after_it(scene: Scene) -> None:
    """A sync between both readings is no skip: the group had moved on the source before it."""
    judge, reading = GroupJudge(flow_config()), iter(range(1, 1000))

    def after(*, source: int | None = None, target: int | None = None) -> tuple[str, ...]:
        for side, partition, commit in (
            (scene.target, COPY, target),
            (scene.source, PARTITION, source),
        ):
            if commit is not None:
                side["group_offsets"] = {"app": {partition: commit}}
                side["groups_read_at"] = {"app": 900.0 + next(reading)}
        (state,) = judge.judge(*read(scene))
        return tuple(blocked.reason for blocked in state.readiness.blocked)

    assert after(source=90, target=80) == ()
    for position in range(91, 99):
        assert after(target=position) == (), "the source's newer commit is not read yet"
        assert after(source=position) == ()
    assert after(target=99) == ()
    assert after(source=98) == (BlockReason.WOULD_SKIP_RECORDS,)


def test_commit_beyond_end_of_source_blocks_until_it_is_within_the_log(scene: Scene) -> None:
    scene.source["group_offsets"] = {"app": {PARTITION: 130}}
    scene.source["groups_read_at"] = {"app": 999.0}
    (state,) = judge(scene)
    expected = Blocked(BlockReason.SOURCE_COMMIT_BEYOND_END, PARTITION, 30)
    assert state.readiness.blocked == (expected,)
    scene.logs[PARTITION].live(140, 140)
    assert reasons(scene) == []
    # Commits that were read after the end offsets prove nothing.
    scene.logs[PARTITION].live(100, 100)
    scene.source["groups_read_at"] = {"app": 1001.0}
    assert reasons(scene) == []


@pytest.mark.parametrize("synced_commit", [81, 5100])
def test_foreign_records_in_the_copy_are_no_redelivery(scene: Scene, synced_commit: int) -> None:
    (log,) = scene.logs.values()
    log.sync, log.committed = NewestSync(80, 80, 900.0), 99
    log.target_end = 5100
    scene.source["group_offsets"] = {"app": {PARTITION: 100}}
    scene.target["group_offsets"] = {"app": {COPY: synced_commit}}
    (state,) = judge(scene)
    readiness = state.readiness
    assert readiness.ready
    # Of 19 records after the sync, none or all may be before the 5,000 of the other producer.
    assert (readiness.redelivery_lower, readiness.redelivery_upper) == (
        (0, 19) if synced_commit == 81 else (0, 0)
    )


def test_groups_are_not_judged_before_those_of_the_target_were_read(scene: Scene) -> None:
    scene.target["groups_complete"] = False
    assert judge(scene) == ()


def test_group_offsets_pair_commits_with_checkpoints(scene: Scene) -> None:
    scene.source["group_offsets"] = {"app": {PARTITION: 90}, "new": {PARTITION: 5}}
    seen, _topics = read(scene)
    assert group_offsets(seen) == {
        "app": ({PARTITION: 90}, {COPY: NewestCheckpoint(80, 80, 950.0)}),
        "new": ({PARTITION: 5}, {}),
    }


@pytest.mark.parametrize("side", ["source_readable", "target_readable"])
def test_group_offsets_while_cluster_is_unreadable_are_none(scene: Scene, side: str) -> None:
    setattr(scene, side, False)
    seen, _topics = read(scene)
    assert group_offsets(seen) is None


def test_groups_that_mirrormaker_does_not_list_are_blocked_whatever_their_checkpoint_says(
    scene: Scene,
) -> None:
    judge, seen = GroupJudge(flow_config()), read(scene)
    assert [state.readiness.ready for state in judge.judge(*seen)] == [True]
    scene.source |= {
        "group_states": {"idle": "empty", "console-consumer-1": "stable", "mm2slo.canary.us": "x"},
        "uncarried_groups": frozenset({"app", "share", "connect-share"}),
        "knows_uncarried_groups": True,
        "groups_complete": True,
    }
    seen = read(scene)
    found = judge.judge(*seen)
    assert {each.group: each.readiness.blocked for each in found} == {
        "app": (Blocked(BlockReason.NOT_REPLICATED_STREAMS),),
        "share": (Blocked(BlockReason.NOT_REPLICATED_SHARE),),
    }
    app, share = found
    assert app.readiness.redelivery_upper == 10  # from the checkpoint that is still there
    assert share.readiness.redelivery_upper is None
    assert judge.unjudged(seen[0], found) == UnjudgedGroups(
        excluded=("connect-share", "console-consumer-1"),
        without_commits=("idle",),
        all_types=True,
    )
    scene.source["groups_complete"] = False
    assert judge.unjudged(scene.look(1000.0), found) == UnjudgedGroups()
    # Its checkpoints say nothing about the flow.
    assert group_offsets(seen[0]) == {}


def test_groups_of_other_flows_are_not_judged(scene: Scene) -> None:
    scene.source["group_offsets"]["other"] = {PARTITION: 90}
    judge = GroupJudge(flow_config(groups=("app",)))
    seen = read(scene)
    assert [state.group for state in judge.judge(*seen)] == ["app"]
    judge.use(flow_config(groups=("oth.*",)))
    assert [state.group for state in judge.judge(*seen)] == ["other"]
