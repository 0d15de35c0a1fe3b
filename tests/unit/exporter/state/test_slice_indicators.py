"""SLIs measured in time slices."""

from collections.abc import Mapping

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.group_readiness import NewestCheckpoint
from mm2slo_core.indicators.sli_counters import FreshnessClass, Sli, SliCount, SliKey
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.flow_judge import FreshnessClasses, SliceIndicators
from mm2slo_exporter.state.flow_report import HeartbeatState
from mm2slo_exporter.state.flow_tracker import FlowTracker

FLOW = flow_config(
    slice="10s",
    freshness=[
        {"name": "fast", "topics": ["pay", "orders-eu"], "threshold": "5s"},
        {"name": "slow", "topics": ["pay.*", "orders.*"], "threshold": "60s"},
        {"name": "rest", "topics": [".*"], "threshold": "300s"},
    ],
)
FAST, SLOW, REST = (FreshnessClass(n, t) for n, t in [("fast", 5), ("slow", 60), ("rest", 300)])


def freshness(counts: Mapping[SliKey, SliCount], name: str) -> SliCount:
    return counts[SliKey(Sli.DATA_FRESHNESS, name)]


def test_freshness_class_is_first_match_of_whole_name() -> None:
    scene = Scene()
    for topic in ("pay", "payments", "orders-eu", "orders", "other"):
        scene.add(topic).live(10, 10)
    scene.logs[TopicPartition("payments", 0)].end = 20
    tracker = FlowTracker(FLOW, carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0)
    topics = tracker.update(scene.look(100.0)).topics
    classes = FreshnessClasses(FLOW)
    assert classes.names == ("fast", "slow", "rest")
    assert classes.lags(topics) == {FAST: [0.0, 0.0], SLOW: [None, 0.0], REST: [0.0]}
    assert classes.lags(topics, known=False) == {FAST: [None] * 2, SLOW: [None] * 2, REST: [None]}


def test_slice_counts_each_partition_at_its_end() -> None:
    scene = Scene()
    scene.add("pay", partitions=2)
    fresh, late = scene.logs.values()
    fresh.live(10, 10)
    late.live(10, 10)
    tracker = FlowTracker(FLOW, carrier=CanaryCarrier.OFF, shared_target=False, started_at=101.0)
    tracker.update(scene.look(102.0))
    late.end = 20  # arrives between the rounds of 102 and 103
    assert freshness(tracker.update(scene.look(103.0)).slis, "fast") == SliCount(0, 0, 0)
    assert freshness(tracker.update(scene.look(109.9)).slis, "fast") == SliCount(0, 0, 0)
    # Arrived within [101.8, 102.9]: at 110 its lag is more than five seconds.
    assert freshness(tracker.update(scene.look(110.0)).slis, "fast") == SliCount(1, 2, 0)
    assert freshness(tracker.update(scene.look(119.0)).slis, "fast") == SliCount(1, 2, 0)
    # The slice that ended at 120 was missed, the one at 130 is judged.
    assert freshness(tracker.update(scene.look(131.0)).slis, "fast") == SliCount(2, 4, 2)


@pytest.mark.parametrize("side", ["source_readable", "target_readable"])
def test_freshness_while_cluster_is_unreadable_is_unknown(side: str) -> None:
    scene = Scene()
    scene.add("pay").live(10, 20)
    tracker = FlowTracker(FLOW, carrier=CanaryCarrier.OFF, shared_target=False, started_at=101.0)
    tracker.update(scene.look(102.0))
    setattr(scene, side, False)
    assert freshness(tracker.update(scene.look(115.0)).slis, "fast") == SliCount(0, 0, 1)


def test_group_is_good_while_checkpoint_follows_commits() -> None:
    flow = flow_config(slice="10s", checkpoint_interval="10s")
    scene = Scene()
    scene.add("pay").live(5000, 5000)
    here, there = TopicPartition("pay", 0), TopicPartition("us.pay", 0)
    tracker = FlowTracker(flow, carrier=CanaryCarrier.OFF, shared_target=False, started_at=101.0)
    counts = []
    for step in range(6):
        scene.source["group_offsets"] = {"app": {here: 1000 + 500 * step}}
        # No checkpoints after the second step.
        mark = NewestCheckpoint(1000 + 500 * min(step, 2), 1000, 100.0)
        scene.internals["checkpoints"] = {"app": {there: mark}}
        found = tracker.update(scene.look(110.0 + 10 * step)).slis
        counts.append(found[SliKey(Sli.CHECKPOINT_FRESHNESS)])
    # The first slice sees no commit. The commit of 140 s may lag for three intervals.
    assert counts == [
        SliCount(0, 0, 0),
        SliCount(1, 1, 0),
        SliCount(2, 2, 0),
        SliCount(3, 3, 0),
        SliCount(4, 4, 0),
        SliCount(5, 5, 0),
    ]
    scene.source["group_offsets"] = {"app": {here: 4500}}
    late = tracker.update(scene.look(171.0)).slis[SliKey(Sli.CHECKPOINT_FRESHNESS)]
    assert late == SliCount(5, 6, 0)


@pytest.mark.parametrize(("offset_lag_max", "good"), [(100, 0), (1000, 1)])
def test_group_whose_commits_lie_between_two_offset_syncs_is_good(
    offset_lag_max: int, good: int
) -> None:
    flow = flow_config(slice="10s", checkpoint_interval="10s", offset_lag_max=offset_lag_max)
    scene = Scene()
    scene.add("pay").live(5000, 5000)
    here, there = TopicPartition("pay", 0), TopicPartition("us.pay", 0)
    tracker = FlowTracker(flow, carrier=CanaryCarrier.OFF, shared_target=False, started_at=101.0)
    scene.internals["checkpoints"] = {"app": {there: NewestCheckpoint(1000, 1000, 100.0)}}
    for step, commit in enumerate((1000, 1500, 1500, 1500, 1500, 1600)):
        scene.source["group_offsets"] = {"app": {here: commit}}
        slis = tracker.update(scene.look(110.0 + 10 * step)).slis
    # MirrorMaker 2 writes the next checkpoint after the next sync, at 2000 with 1000.
    assert slis[SliKey(Sli.CHECKPOINT_FRESHNESS)] == SliCount(1 + good, 2, 0)


BEATS = [
    ("recent", HeartbeatState(present=True, age_seconds=30.0), SliCount(1, 1, 0)),
    ("old", HeartbeatState(present=True, age_seconds=30.1), SliCount(0, 1, 0)),
    ("no heartbeat", HeartbeatState(present=False), SliCount(0, 0, 1)),
]


@pytest.mark.parametrize(("case", "beats", "expected"), BEATS, ids=[case[0] for case in BEATS])
def test_availability_without_canaries_follows_heartbeats(
    case: str, beats: HeartbeatState, expected: SliCount
) -> None:
    slices = SliceIndicators(FLOW, by_heartbeats=True, started_at=101.0)
    slices.observe(Scene().look(110.0), [], beats)
    assert slices.counts()[SliKey(Sli.AVAILABILITY)] == expected, case


@pytest.mark.parametrize(
    ("away_for", "expected"), [(20.0, SliCount(0, 0, 1)), (5.0, SliCount(0, 1, 0))]
)
def test_missing_heartbeats_while_source_is_unreadable_are_unknown(
    away_for: float, expected: SliCount
) -> None:
    scene = Scene()
    scene.look(200.0 - away_for + 0.1)
    scene.source_readable = False
    slices = SliceIndicators(FLOW, by_heartbeats=True, started_at=195.0)
    slices.observe(scene.look(200.0), [], HeartbeatState(present=True, age_seconds=45.0))
    assert slices.counts()[SliKey(Sli.AVAILABILITY)] == expected


def test_slices_with_canaries_have_no_availability() -> None:
    slices = SliceIndicators(FLOW, by_heartbeats=False, started_at=101.0)
    assert SliKey(Sli.AVAILABILITY) not in slices.counts()
    assert set(slices.counts().values()) == {SliCount(0, 0, 0)}
