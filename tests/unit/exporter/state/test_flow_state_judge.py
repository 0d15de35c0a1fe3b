"""The state of a flow, judged by its partitions, canaries, heartbeats and tasks."""

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.indicators.flow_state import FlowStateName, StateReason
from mm2slo_exporter.canary.canary_messages import (
    HeartbeatSeen,
    Produced,
    RestoreFinished,
    Scheduled,
)
from mm2slo_exporter.state.flow_judge import all_tasks_running, connector_running
from mm2slo_exporter.state.flow_tracker import FlowTracker

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
def test_connector_running_while_any_task_is_running(
    states: dict[tuple[str, int | None], str],
    running: bool | None,
) -> None:
    assert connector_running(states, SOURCE) is running


def test_all_tasks_running_checks_named_connectors_only() -> None:
    states: dict[tuple[str, int | None], str] = {
        (SOURCE, None): "RUNNING",
        (SOURCE, 0): "RUNNING",
        ("Checkpoints", 0): "FAILED",
    }
    assert all_tasks_running(states, [SOURCE]) is True
    assert all_tasks_running(states, [SOURCE, "Checkpoints"]) is False
    assert all_tasks_running(states, ["Unknown"]) is None


class Watched:
    """A flow with one data partition and no canaries, since 0 s."""

    def __init__(self, carrier: CanaryCarrier = CanaryCarrier.OFF) -> None:
        self.scene = Scene()
        self.log = self.scene.add("orders")
        self.tracker = FlowTracker(
            flow_config(), carrier=carrier, shared_target=False, started_at=0.0
        )

    def look(self, at: float, *events: object) -> tuple[FlowStateName, str]:
        report = self.tracker.update(self.scene.look(at, *events))  # type: ignore[arg-type]  # events of any kind
        return report.state, report.state_reason


def test_flow_with_stalled_backlog_is_stopped_after_timeout() -> None:
    watched = Watched()
    watched.log.live(10, 10)
    watched.look(-30.0)
    assert watched.look(0.0) == (IDLE, StateReason.NOTHING_TO_COPY)
    watched.log.live(15, 20)
    assert watched.look(5.0) == (RUNNING, StateReason.POSITION_ADVANCES)
    assert watched.look(34.9) == (RUNNING, StateReason.POSITION_ADVANCES)
    assert watched.look(35.0) == (STOPPED, StateReason.BACKLOG_STALLED)


def test_stop_timeout_of_committed_position_includes_flush_interval() -> None:
    watched = Watched()
    watched.log.end, watched.log.committed = 20, 9
    assert watched.look(0.0) == (UNKNOWN, StateReason.EVIDENCE_PENDING)
    for at in (30.0, 60.0, 89.0):
        assert watched.look(at)[0] is UNKNOWN
    assert watched.look(90.0) == (STOPPED, StateReason.BACKLOG_STALLED)


def test_flow_with_one_advancing_partition_is_running() -> None:
    watched = Watched()
    second = watched.scene.add("pay")
    watched.log.live(10, 20)
    for step in range(20):
        second.live(10 * step, 10 * step + 5)
        found = watched.look(5.0 * step)
    assert found == (RUNNING, StateReason.POSITION_ADVANCES)


def test_flow_is_stopped_although_quiet_partitions_get_their_first_records() -> None:
    watched = Watched()
    quiet = [watched.scene.add(f"quiet-{number}") for number in range(20)]
    watched.log.live(10, 20)
    for at in (0.0, 20.0):
        watched.look(at)
    for number, log in enumerate(quiet):
        log.end = 1
        found = watched.look(30.0 + 10.0 * number)
        stopped = (STOPPED, StateReason.BACKLOG_STALLED)
        # Nothing of the quiet topics was replicated: their positions are those of commits.
        assert (found == stopped) is (number >= 6), number


def test_flow_without_backlog_is_idle_by_heartbeats() -> None:
    watched = Watched()
    beat = HeartbeatSeen("us->eu", "us", 99.0, 99.1, replayed=False)
    assert watched.look(100.0, beat) == (IDLE, StateReason.HEARTBEATS_ARRIVE)
    watched.look(120.0)
    assert watched.look(140.0) == (IDLE, StateReason.NOTHING_TO_COPY)
    watched.scene.internals["states"] = {(SOURCE, None): "PAUSED"}
    assert watched.look(145.0) == (STOPPED, StateReason.CONNECTOR_NOT_RUNNING)


def test_idle_flow_without_canary_arrivals_is_stopped() -> None:
    watched = Watched(CanaryCarrier.TOPIC)
    watched.look(101.0, RestoreFinished("us->eu", 100.0))
    events = [
        event
        for second in range(1, 40)
        for event in (
            Scheduled("us->eu", second, 0, 100.0 + second),
            Produced("us->eu", second, 0, second, 100.0 + second),
        )
    ]
    assert watched.look(130.9, *events) == (UNKNOWN, StateReason.EVIDENCE_PENDING)
    assert watched.look(131.0) == (STOPPED, StateReason.CANARIES_SILENT)


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        ("source_readable", StateReason.SOURCE_UNREADABLE),
        ("target_readable", StateReason.TARGET_UNREADABLE),
    ],
)
def test_flow_with_unreadable_cluster_is_unknown(side: str, reason: StateReason) -> None:
    watched = Watched()
    watched.look(0.0)
    setattr(watched.scene, side, False)
    assert watched.look(100.0) == (UNKNOWN, reason)


def test_topics_read_again_are_not_progress() -> None:
    watched = Watched()
    watched.log.live(10, 10)
    watched.look(0.0)
    watched.log.live(20, 30)
    watched.look(5.0)
    assert watched.look(95.0)[0] is STOPPED
    watched.scene.internals["waiting_for"] = ("checkpoints",)
    assert watched.look(100.0) == (UNKNOWN, StateReason.NOT_READY)
    watched.scene.internals["waiting_for"] = ()
    assert watched.look(105.0) == (STOPPED, StateReason.BACKLOG_STALLED)


def test_start_during_a_stop_is_unknown_until_the_stop_is_certain() -> None:
    watched = Watched()
    watched.log.live(10, 20)
    assert watched.look(500.0) == (UNKNOWN, StateReason.EVIDENCE_PENDING)
    watched.log.live(10, 30)  # the source goes on
    assert watched.look(529.9) == (UNKNOWN, StateReason.EVIDENCE_PENDING)
    assert watched.look(530.0) == (STOPPED, StateReason.BACKLOG_STALLED)


def test_start_of_a_working_flow_is_running_with_the_first_progress() -> None:
    watched = Watched()
    watched.log.live(10, 20)
    assert watched.look(500.0) == (UNKNOWN, StateReason.EVIDENCE_PENDING)
    watched.log.live(11, 20)
    assert watched.look(505.0) == (RUNNING, StateReason.POSITION_ADVANCES)


def test_backlog_after_short_unreadable_period_is_within_grace_period() -> None:
    watched = Watched()
    watched.log.live(10, 10)
    for at in (0.0, 20.0, 40.0):
        watched.look(at)
    watched.scene.target_readable = False
    watched.look(45.0)
    watched.scene.target_readable = True
    watched.log.live(10, 20)
    assert watched.look(50.0) == (RUNNING, StateReason.WITHIN_GRACE_PERIOD)


@pytest.mark.parametrize("side", ["source_readable", "target_readable"])
def test_backlog_after_outage_is_unknown_until_evidence_decides(side: str) -> None:
    watched = Watched()
    watched.log.live(10, 10)
    watched.look(0.0)
    setattr(watched.scene, side, False)
    watched.look(300.0)
    setattr(watched.scene, side, True)
    watched.log.live(10, 20)
    assert watched.look(600.0) == (UNKNOWN, StateReason.EVIDENCE_PENDING)
    assert watched.look(630.0) == (STOPPED, StateReason.BACKLOG_STALLED)


def test_stopped_flow_stays_stopped_without_leader_of_lagging_partition() -> None:
    watched = Watched()
    watched.scene.add("pay").live(10, 10)
    watched.log.live(10, 20)
    for at in (0.0, 30.0, 60.0):
        found = watched.look(at)
    assert found == (STOPPED, StateReason.BACKLOG_STALLED)
    watched.log.end = None
    assert watched.look(65.0) == (STOPPED, StateReason.BACKLOG_STALLED)
    assert watched.look(365.0) == (STOPPED, StateReason.BACKLOG_STALLED)
    beat = HeartbeatSeen("us->eu", "us", 369.0, 369.1, replayed=False)
    watched.look(370.0, beat)
    assert watched.look(375.0) == (RUNNING, StateReason.HEARTBEATS_ARRIVE)


def test_flow_is_not_stopped_by_partition_that_lost_its_leader_before_it_stalled() -> None:
    watched = Watched()
    watched.scene.add("pay").live(10, 10)
    watched.log.live(10, 10)
    for at in (0.0, 30.0):
        watched.look(at)
    watched.log.live(10, 20)
    watched.look(35.0)
    watched.log.end = None
    for at in range(40, 300, 20):
        assert watched.look(float(at)) == (RUNNING, StateReason.WITHIN_GRACE_PERIOD)


def test_flow_that_is_polled_less_often_than_stall_after_is_judged() -> None:
    watched = Watched()
    watched.log.live(10, 10)
    found = [watched.look(40.0 * poll) for poll in range(3)]
    assert found == [
        (UNKNOWN, StateReason.EVIDENCE_PENDING),
        *[(IDLE, StateReason.NOTHING_TO_COPY)] * 2,
    ]
    watched.log.live(15, 20)
    assert watched.look(120.0) == (RUNNING, StateReason.POSITION_ADVANCES)
    assert watched.look(160.0) == (STOPPED, StateReason.BACKLOG_STALLED)
