"""Settings of the running connectors, where the configuration says something else."""

from dataclasses import replace

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier, Isolation
from mm2slo_core.indicators.flow_state import FlowStateName
from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.mm2_config.running_settings import RunningConnectors
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.records.connect_records import ConnectorConfig
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import HeartbeatSeen
from mm2slo_exporter.flow_observation import NewestSync
from mm2slo_exporter.state.flow_report import PartitionState
from mm2slo_exporter.state.flow_tracker import FlowTracker

SOURCE, CHECKPOINT = "MirrorSourceConnector", "MirrorCheckpointConnector"


def tracker(**flow: object) -> FlowTracker:
    configured = flow_config(**flow)
    return FlowTracker(configured, carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0)


def running(connector: str, **settings: str) -> RunningConnectors:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return RunningConnectors({connector: ConnectorConfig(connector, named)})


def partition(flow: FlowTracker, scene: Scene, at: float) -> PartitionState:
    (topic,) = flow.update(scene.look(at)).topics
    return topic.partitions[0]


def exactly_once_scene() -> Scene:
    """60 of 100 records replicated and committed; 20 markers are among the copies."""
    scene = Scene()
    log = scene.add("orders")
    log.live(80, 100)
    log.committed = 59
    return scene


def test_exactly_once_worker_found_in_first_round_has_position_of_commit() -> None:
    scene = exactly_once_scene()
    assert partition(tracker(), scene, 1000.0).lag_records == 20  # too low: markers are no records
    scene.internals["connectors"] = RunningConnectors(transactional=True)
    flow = tracker()
    found = partition(flow, scene, 1000.0)
    assert (found.lag_records, found.quality) == (40, PositionQuality.EXACTLY_ONCE)
    assert flow.update(scene.look(1005.0)).overridden == (("exactly_once", "false", "true"),)


def test_exactly_once_worker_found_later_corrects_position_at_once() -> None:
    scene, flow = exactly_once_scene(), tracker()
    assert partition(flow, scene, 1000.0).quality is PositionQuality.LIVE
    scene.internals["connectors"] = RunningConnectors(transactional=True)
    found = partition(flow, scene, 1005.0)
    assert (found.lag_records, found.quality) == (40, PositionQuality.EXACTLY_ONCE)


def test_configured_settings_stay_if_flow_says_so() -> None:
    scene, flow = exactly_once_scene(), tracker(settings="configured")
    scene.internals["connectors"] = RunningConnectors(transactional=True)
    assert partition(flow, scene, 1000.0).quality is PositionQuality.LIVE
    assert flow.update(scene.look(1005.0)).overridden == ()


@pytest.mark.parametrize(
    ("ids", "shared"), [(("x", "x"), "x"), (("x", "y"), None), ((None, None), None)]
)
def test_two_aliases_of_one_cluster_are_reported(
    ids: tuple[str | None, str | None], shared: str | None
) -> None:
    seen = exactly_once_scene().look(1000.0)
    source, target = (
        replace(seen.source, cluster_id=ids[0]),
        replace(seen.target, cluster_id=ids[1]),
    )
    assert tracker().update(replace(seen, source=source, target=target)).shared_cluster == shared


def test_read_committed_consumer_is_compared_with_last_stable_offset() -> None:
    scene, flow = Scene(), tracker()
    log = scene.add("orders")
    log.live(90, 100)
    log.stable = 95
    assert partition(flow, scene, 1000.0).lag_records == 10
    scene.internals["connectors"] = running(
        SOURCE, source_consumer_isolation_level="read_committed"
    )
    assert partition(flow, scene, 1005.0).lag_records == 5
    assert flow.flow.isolation is Isolation.READ_COMMITTED


def test_topic_that_the_running_connector_does_not_select_is_no_backlog() -> None:
    scene, flow = Scene(), tracker(topics=["orders", "pay"])
    scene.add("orders").live(100, 100)
    log = scene.add("pay", role=TopicRole.UNSELECTED)
    log.end = 40
    scene.missing_copies.add("pay")
    reports = [flow.update(scene.look(5.0 * number)) for number in range(1, 60)]
    assert {each.state for each in reports} <= {FlowStateName.UNKNOWN, FlowStateName.IDLE}
    last = reports[-1]
    assert (last.state, last.lag_records, last.stalled) == (FlowStateName.IDLE, 0, ())
    assert last.topics[1].missing_on_target
    assert last.topics[1].partitions[0].lag_records is None
    freshness = flow.slis()[SliKey(Sli.DATA_FRESHNESS, "default")]
    assert (freshness.total - freshness.good, freshness.unknown) == (0, 0)


def test_group_with_commits_on_an_unselected_topic_is_not_ready() -> None:
    scene, flow = Scene(), tracker()
    scene.add("pay", role=TopicRole.UNSELECTED).end = 40
    scene.source["group_offsets"] = {"app": {TopicPartition("pay", 0): 10}}
    (group,) = flow.update(scene.look(1000.0)).groups
    assert not group.readiness.ready


def test_copy_with_unknown_name_has_position_by_commits_and_no_figures_of_the_copy() -> None:
    scene, flow = Scene(), tracker()
    log = scene.add("orders")
    scene.copies["orders"] = ""
    log.end, log.committed, log.sync = 100, 89, NewestSync(0, 0, 900.0)
    scene.internals["assigned"] = frozenset({TopicPartition("orders", 0)})
    (topic,) = flow.update(scene.look(1000.0)).topics
    found = topic.partitions[0]
    assert (found.quality, found.next_offset, found.lag_records) == (
        PositionQuality.RENAMED_COPY,
        90,
        10,
    )
    assert (found.target_end, topic.target_partition_count) == (None, None)
    assert (topic.missing_on_target, topic.assigned_missing) == (False, None)


def test_renamed_copy_has_the_live_position_of_its_own_offsets() -> None:
    scene, flow = Scene(), tracker()
    log = scene.add("orders")
    scene.copies["orders"] = "new.orders"
    log.live(90, 100)
    look = scene.look(1000.0)
    assert look.target_offsets is not None
    own = replace(look.target_offsets, ends={TopicPartition("new.orders", 0): 90})
    (topic,) = flow.update(replace(look, target_offsets=own)).topics
    found = topic.partitions[0]
    assert (found.quality, found.lag_records) == (PositionQuality.LIVE, 10)


def test_settings_that_connectors_stop_stating_are_configured_ones_again() -> None:
    scene, flow = Scene(), tracker(checkpoint_interval="5s")
    scene.internals["connectors"] = running(CHECKPOINT, emit_checkpoints_interval_seconds="90")
    flow.update(scene.look(1000.0))
    assert flow.flow.checkpoint_interval == 90.0
    scene.internals["connectors"] = RunningConnectors()
    flow.update(scene.look(1005.0))
    assert flow.flow.checkpoint_interval == 5.0


@pytest.mark.parametrize("emitted", [True, False])
def test_age_of_old_heartbeats_is_published_only_if_they_are_emitted(*, emitted: bool) -> None:
    scene, flow = Scene(), tracker()
    text = str(emitted).lower()
    settings = ConnectorConfig("MirrorHeartbeatConnector", {"emit.heartbeats.enabled": text})
    scene.internals["connectors"] = RunningConnectors(heartbeats=settings)
    old = HeartbeatSeen("us->eu", "eu", 100.0, 100.2, replayed=True)
    report = flow.update(scene.look(5_000.0, old))
    assert report.info.heartbeats_disabled is not emitted
    assert report.heartbeats.age_seconds == (4_900.0 if emitted else None)


def test_reload_keeps_settings_of_running_connectors() -> None:
    scene, flow = exactly_once_scene(), tracker()
    scene.internals["connectors"] = RunningConnectors(transactional=True)
    flow.update(scene.look(1000.0))
    reloaded = FlowTracker(
        flow_config(stall_after="50s"),
        carrier=CanaryCarrier.OFF,
        shared_target=False,
        started_at=1001.0,
        previous=flow,
    )
    found = partition(reloaded, scene, 1005.0)
    assert (found.lag_records, found.quality) == (40, PositionQuality.EXACTLY_ONCE)
