"""Selection of the positions to probe."""

import pytest
from flow_observations import Log, Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier, Isolation
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import ProbeSpan
from mm2slo_exporter.service.flow_runner import wanted_probes
from mm2slo_exporter.state.flow_tracker import FlowTracker

PARTITION = TopicPartition("orders", 0)
UNCOMMITTED, COMMITTED = Isolation.READ_UNCOMMITTED, Isolation.READ_COMMITTED


def wanted(
    log: Log,
    *,
    isolation: Isolation = UNCOMMITTED,
    moved_at: float | None = None,
    at: float = 110.0,
) -> dict[TopicPartition, ProbeSpan]:
    """Wanted probes at *at*, of a flow first seen at 100 s that advanced at *moved_at*."""
    scene = Scene()
    scene.add("orders")
    scene.logs[PARTITION] = log
    tracker = FlowTracker(
        flow_config(isolation=isolation.value),
        carrier=CanaryCarrier.OFF,
        shared_target=False,
        started_at=0.0,
    )
    position = log.target_end
    if moved_at is not None and position is not None:
        log.target_end = position - 1
        tracker.update(scene.look(100.0))
        log.target_end = position
        tracker.update(scene.look(moved_at))
    return dict(wanted_probes(tracker.update(scene.look(at)), isolation))


def behind(**changes: int) -> Log:
    log = Log()
    log.live(40, 50)
    for name, value in changes.items():
        setattr(log, name, value)
    return log


def test_unsettled_position_with_lag_is_probed() -> None:
    assert wanted(behind()) == {PARTITION: ProbeSpan(40, 50)}


def test_position_without_lag_is_not_probed() -> None:
    assert wanted(behind(target_end=50)) == {}


def test_probe_starts_at_log_start() -> None:
    assert wanted(behind(start=45)) == {PARTITION: ProbeSpan(45, 50)}
    assert wanted(behind(start=50)) == {}


@pytest.mark.parametrize(("at", "looked"), [(106.9, False), (107.0, True)])
def test_recently_advanced_position_with_known_age_is_not_probed(
    at: float,
    looked: bool,
) -> None:
    log = behind(end=39)
    scene_end = 50
    scene = Scene()
    scene.add("orders")
    scene.logs[PARTITION] = log
    tracker = FlowTracker(
        flow_config(), carrier=CanaryCarrier.OFF, shared_target=False, started_at=0.0
    )
    log.target_end = 39
    tracker.update(scene.look(100.0))
    log.end, log.target_end = scene_end, 40
    tracker.update(scene.look(105.0))
    assert bool(wanted_probes(tracker.update(scene.look(at)), UNCOMMITTED)) is looked


def test_probe_of_read_committed_flow_ends_at_last_stable_offset() -> None:
    assert wanted(behind(stable=46), isolation=COMMITTED) == {PARTITION: ProbeSpan(40, 46)}
    assert wanted(behind(stable=40), isolation=COMMITTED) == {}
