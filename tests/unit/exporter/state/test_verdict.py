"""The state of a flow by what its partitions, canaries, heartbeats and tasks show."""

from __future__ import annotations

import pytest
from observing import Scene, flow_config

from mm2slo_core.config.canary import CanaryCarrier
from mm2slo_core.flow_state import FlowStateName, StateReason
from mm2slo_exporter.canary.events import HeartbeatSeen, Produced, Restored, Scheduled
from mm2slo_exporter.state.flow import FlowTracker
from mm2slo_exporter.state.verdict import all_tasks_running, connector_running

RUNNING, IDLE = FlowStateName.RUNNING, FlowStateName.IDLE
STOPPED, UNKNOWN = FlowStateName.STOPPED, FlowStateName.UNKNOWN
SOURCE = "MirrorSourceConnector"


@pytest.mark.parametrize(
    ("states", "running"),
    [
        ({}, None),
        ({("Other", None): "RUNNING"}, None),
        ({(SOURCE, None): "RUNNING"}, True),
        ({(SOURCE, None): "PAUSED", (SOURCE, 0): "RUNNING"}, False),
        ({(SOURCE, None): "RUNNING", (SOURCE, 0): "FAILED", (SOURCE, 1): "RUNNING"}, True),
        ({(SOURCE, None): "RUNNING", (SOURCE, 0): "FAILED", (SOURCE, 1): "PAUSED"}, False),
        ({(SOURCE, 0): "RESTARTING"}, True),
        ({(SOURCE, 0): "UNASSIGNED"}, False),
    ],
)
def test_a_connector_runs_while_one_of_its_tasks_does(
    states: dict[tuple[str, int | None], str],
    running: bool | None,
) -> None:
    assert connector_running(states, SOURCE) is running


def test_all_tasks_run_when_none_of_the_named_connectors_has_another_state() -> None:
    states: dict[tuple[str, int | None], str] = {
        (SOURCE, None): "RUNNING",
        (SOURCE, 0): "RUNNING",
        ("Checkpoints", 0): "FAILED",
    }
    assert all_tasks_running(states, [SOURCE]) is True
    assert all_tasks_running(states, [SOURCE, "Checkpoints"]) is False
    assert all_tasks_running(states, ["Unknown"]) is None


class Watched:
    """One data partition, no canaries, watched from 0 s on."""

    def __init__(self, carrier: CanaryCarrier = CanaryCarrier.OFF) -> None:
        self.scene = Scene()
        self.log = self.scene.add("orders")
        self.tracker = FlowTracker(
            flow_config(), carrier=carrier, shared_target=False, started_at=0.0
        )

    def look(self, at: float, *events: object) -> tuple[FlowStateName, str]:
        report = self.tracker.update(self.scene.look(at, *events))  # type: ignore[arg-type]  # events of any kind
        return report.state, report.state_reason


def test_a_flow_that_copies_runs_then_stops_after_the_patience() -> None:
    watched = Watched()
    watched.log.live(10, 10)
    assert watched.look(0.0) == (IDLE, StateReason.NOTHING_TO_COPY)
    watched.log.live(15, 20)
    assert watched.look(5.0) == (RUNNING, StateReason.POSITION_ADVANCES)
    assert watched.look(34.9) == (RUNNING, StateReason.POSITION_ADVANCES)
    assert watched.look(35.0) == (STOPPED, StateReason.BACKLOG_STANDS_STILL)


def test_a_position_by_commit_is_given_a_flush_interval_more() -> None:
    watched = Watched()
    watched.log.end, watched.log.committed = 20, 9
    assert watched.look(0.0) == (RUNNING, StateReason.WITHIN_PATIENCE)
    assert watched.look(89.0)[0] is RUNNING
    assert watched.look(90.0) == (STOPPED, StateReason.BACKLOG_STANDS_STILL)


def test_one_partition_that_moves_keeps_the_flow_running() -> None:
    watched = Watched()
    second = watched.scene.add("pay")
    watched.log.live(10, 20)
    for step in range(20):
        second.live(10 * step, 10 * step + 5)
        found = watched.look(5.0 * step)
    assert found == (RUNNING, StateReason.POSITION_ADVANCES)


def test_heartbeats_show_life_where_nothing_waits() -> None:
    watched = Watched()
    beat = HeartbeatSeen("us->eu", "us", 99.0, 99.1, replayed=False)
    assert watched.look(100.0, beat) == (IDLE, StateReason.HEARTBEATS_ARRIVE)
    assert watched.look(140.0) == (IDLE, StateReason.NOTHING_TO_COPY)
    watched.scene.internals["states"] = {(SOURCE, None): "PAUSED"}
    assert watched.look(145.0) == (STOPPED, StateReason.CONNECTOR_NOT_RUNNING)


def test_silent_canaries_stop_an_idle_flow() -> None:
    watched = Watched(CanaryCarrier.TOPIC)
    watched.look(100.0, Restored("us->eu", 100.0))
    events = [
        event
        for second in range(1, 40)
        for event in (
            Scheduled("us->eu", second, 0, 100.0 + second),
            Produced("us->eu", second, 0, second, 100.0 + second),
        )
    ]
    assert watched.look(130.9, *events) == (IDLE, StateReason.NOTHING_TO_COPY)
    assert watched.look(131.0) == (STOPPED, StateReason.CANARIES_SILENT)


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ("source_readable", StateReason.SOURCE_UNREADABLE),
        ("target_readable", StateReason.TARGET_UNREADABLE),
    ],
)
def test_what_cannot_be_read_is_unknown(side: str, reason: StateReason) -> None:
    watched = Watched()
    watched.look(0.0)
    setattr(watched.scene, side, False)
    assert watched.look(100.0) == (UNKNOWN, reason)


def test_topics_read_anew_are_no_movement() -> None:
    watched = Watched()
    watched.log.live(10, 10)
    watched.look(0.0)
    watched.log.live(20, 30)
    watched.look(5.0)
    assert watched.look(95.0)[0] is STOPPED
    watched.scene.internals["waiting_for"] = ("checkpoints",)
    assert watched.look(100.0) == (UNKNOWN, StateReason.NOT_READY)
    watched.scene.internals["waiting_for"] = ()
    assert watched.look(105.0) == (STOPPED, StateReason.BACKLOG_STANDS_STILL)


def test_a_start_that_took_long_is_no_standstill() -> None:
    watched = Watched()
    watched.log.live(10, 20)
    assert watched.look(500.0) == (RUNNING, StateReason.WITHIN_PATIENCE)
    assert watched.look(530.0) == (STOPPED, StateReason.BACKLOG_STANDS_STILL)


@pytest.mark.parametrize("side", ["source_readable", "target_readable"])
def test_what_came_while_a_cluster_was_away_has_not_stood_still_yet(side: str) -> None:
    watched = Watched()
    watched.log.live(10, 10)
    watched.look(0.0)
    setattr(watched.scene, side, False)
    watched.look(300.0)
    setattr(watched.scene, side, True)
    watched.log.live(10, 20)
    assert watched.look(600.0) == (RUNNING, StateReason.WITHIN_PATIENCE)
    assert watched.look(630.0) == (STOPPED, StateReason.BACKLOG_STANDS_STILL)
