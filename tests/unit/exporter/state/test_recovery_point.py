"""Unreplicated records of a flow and of its groups, also after the source went away."""

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.group_readiness import NewestCheckpoint
from mm2slo_core.state_record import RecoveryPoint
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.state.group_lag import LagSum

ORDERS, PAY = TopicPartition("orders", 0), TopicPartition("pay", 0)


@pytest.fixture
def scene() -> Scene:
    """Both topics are replicated up to 100; `app` reads orders."""
    made = Scene()
    for name in ("orders", "pay"):
        made.add(name).live(100, 100)
    made.source["group_offsets"] = {"app": {ORDERS: 90}}
    made.internals["checkpoints"] = {
        "app": {TopicPartition("us.orders", 0): NewestCheckpoint(80, 80, 950.0)}
    }
    return made


@pytest.fixture
def flow() -> FlowTracker:
    return FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
    )


def test_recovery_point_is_exact_while_source_answers(scene: Scene, flow: FlowTracker) -> None:
    caught_up = flow.update(scene.look(1000.0))
    assert caught_up.recovery_point == RecoveryPoint(0, 0.0, read_at=999.8)
    scene.logs[ORDERS].end, scene.logs[PAY].end = 130, 107
    flow.update(scene.look(1005.0))
    report = flow.update(scene.look(1010.0))
    assert report.recovery_point == RecoveryPoint(37, report.lag_seconds, read_at=1009.8)
    (app,) = report.groups
    # The group does not read pay.
    assert app.unreplicated == LagSum(30, report.topics[0].partitions[0].lag_seconds)


def test_recovery_point_is_last_known_while_source_is_away(scene: Scene, flow: FlowTracker) -> None:
    flow.update(scene.look(1000.0))
    scene.logs[ORDERS].end = 130
    before = flow.update(scene.look(1005.0))
    scene.source_readable = False
    report = flow.update(scene.look(1605.0))
    assert (report.lag_records, report.lag_seconds) == (None, None)
    assert report.recovery_point == before.recovery_point
    assert report.recovery_point is not None
    assert report.recovery_point.records == 30
    assert [group.unreplicated for group in report.groups] == [before.groups[0].unreplicated]
    assert report.groups[0].unreplicated.records == 30


def test_recovery_point_is_unknown_until_source_was_read(scene: Scene, flow: FlowTracker) -> None:
    scene.source_readable = False
    assert flow.update(scene.look(1000.0)).recovery_point is None


def test_recovery_point_keeps_partition_whose_leader_is_gone(
    scene: Scene, flow: FlowTracker
) -> None:
    scene.logs[ORDERS].end = 130
    flow.update(scene.look(1000.0))
    scene.logs[ORDERS].end = None
    scene.logs[PAY].end = 107
    report = flow.update(scene.look(1005.0))
    assert report.lag_records == 7
    assert report.recovery_point is not None
    assert (report.recovery_point.records, report.recovery_point.read_at) == (37, 999.8)
    scene.logs[PAY].live(107, 107)
    caught_up = flow.update(scene.look(1010.0))
    assert (caught_up.lag_records, caught_up.lag_seconds) == (None, None)
    assert caught_up.recovery_point is not None
    assert (caught_up.recovery_point.records, caught_up.recovery_point.read_at) == (30, 999.8)
    scene.source_readable = False
    assert flow.update(scene.look(1015.0)).recovery_point == caught_up.recovery_point
    scene.source_readable = True
    scene.logs[ORDERS].live(130, 130)
    report = flow.update(scene.look(1020.0))
    assert (report.lag_records, report.recovery_point) == (0, RecoveryPoint(0, 0.0, 1019.8))


def test_recovery_point_of_started_exporter_without_leader_of_partition_is_not_zero(
    scene: Scene, flow: FlowTracker
) -> None:
    scene.logs[ORDERS].end = None
    assert flow.update(scene.look(1000.0)).recovery_point is None
    scene.logs[PAY].end = 107
    point = flow.update(scene.look(1005.0)).recovery_point
    assert point is not None
    assert (point.records, point.read_at) == (7, 1004.8)


def test_recovery_point_omits_deleted_topic(scene: Scene, flow: FlowTracker) -> None:
    scene.logs[ORDERS].end = 130
    flow.update(scene.look(1000.0))
    scene.logs[ORDERS].end = None
    flow.update(scene.look(1005.0))
    scene.drop("orders")
    assert flow.update(scene.look(1010.0)).recovery_point == RecoveryPoint(0, 0.0, 1009.8)


def test_recovery_point_of_group_without_any_reading_of_source_is_unknown(
    scene: Scene, flow: FlowTracker
) -> None:
    scene.look(995.0)
    scene.source_readable = False
    (app,) = flow.update(scene.look(1000.0)).groups
    assert app.unreplicated == LagSum(None, None)
