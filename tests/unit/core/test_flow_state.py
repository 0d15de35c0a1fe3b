"""Flow states, stalls and topic activity."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.indicators.flow_state import (
    FlowEvidence,
    FlowStateName,
    StallWatch,
    StateTimeouts,
    TopicActivityWatch,
    flow_state,
)

TIMEOUTS = StateTimeouts(stall_after=30.0, canary_deadline=60.0, heartbeat_age=30.0)
IDLE = FlowEvidence(
    ready=True,
    source_readable=True,
    target_readable=True,
    backlog=False,
    progress_age=None,
    stalled_for=None,
    source_moving=False,
)
BUSY = replace(IDLE, backlog=True, progress_age=2.0, stalled_for=0.0, source_moving=True)


@pytest.mark.parametrize(
    ("case", "evidence", "expected"),
    [
        ("data advances", BUSY, "running position_advances"),
        ("nothing to copy", IDLE, "idle nothing_to_copy"),
        ("canaries alone", replace(IDLE, canary_arrival_age=1.0), "idle canaries_arrive"),
        ("canary by a clock ahead", replace(IDLE, canary_arrival_age=-2.0), "idle canaries_arrive"),
        (
            "canary before the clock was set back",
            replace(IDLE, canary_arrival_age=-3600.0),
            "idle nothing_to_copy",
        ),
        ("heartbeats alone", replace(IDLE, heartbeat_age=29.0), "idle heartbeats_arrive"),
        (
            "first backlog without evidence",
            replace(IDLE, backlog=True, stalled_for=5.0, source_moving=True),
            "running within_grace_period",
        ),
        (
            "first backlog, observed too briefly",
            replace(IDLE, backlog=True, stalled_for=5.0, source_moving=True, observed_for=29.9),
            "unknown evidence_pending",
        ),
        (
            "nothing to copy, observed too briefly",
            replace(IDLE, observed_for=29.9),
            "unknown evidence_pending",
        ),
        ("nothing to copy, observed", replace(IDLE, observed_for=30.0), "idle nothing_to_copy"),
        (
            "canaries arrive, observed briefly",
            replace(IDLE, canary_arrival_age=1.0, observed_for=1.0),
            "idle canaries_arrive",
        ),
        (
            "stalled backlog",
            replace(BUSY, progress_age=30.0, stalled_for=30.0),
            "stopped backlog_stalled",
        ),
        (
            "stalled backlog while canaries arrive in another task",
            replace(BUSY, progress_age=30.0, stalled_for=30.0, canary_arrival_age=0.5),
            "stopped backlog_stalled",
        ),
        (
            "stalled backlog while other partitions advance",
            replace(BUSY, progress_age=5.0, stalled_for=300.0),
            "running position_advances",
        ),
        (
            "no canaries arrive",
            replace(IDLE, canary_silence=30.0),
            "stopped canaries_silent",
        ),
        (
            "no canaries arrive, shorter than the timeout",
            replace(IDLE, canary_silence=29.9),
            "idle nothing_to_copy",
        ),
        (
            "data advances while no canaries arrive",
            replace(BUSY, canary_silence=300.0),
            "running position_advances",
        ),
        ("paused", replace(IDLE, connector_running=False), "stopped connector_not_running"),
        (
            "paused just now",
            replace(BUSY, connector_running=False),
            "running position_advances",
        ),
        (
            "paused just now with a recent heartbeat",
            replace(IDLE, connector_running=False, heartbeat_age=5.0),
            "idle heartbeats_arrive",
        ),
        ("target down", replace(BUSY, target_readable=False), "unknown target_unreadable"),
        (
            "target down, nothing arrives",
            replace(BUSY, target_readable=False, canary_silence=99.0, progress_age=99.0),
            "unknown target_unreadable",
        ),
        (
            "source down",
            replace(IDLE, source_readable=False, backlog=None, canary_silence=99.0),
            "unknown source_unreadable",
        ),
        (
            "source unreachable for the exporter, not for MM2",
            replace(IDLE, source_readable=False, backlog=None, canary_arrival_age=3.0),
            "running canaries_arrive",
        ),
        ("not ready", replace(BUSY, ready=False), "unknown not_ready"),
        ("no position", replace(IDLE, backlog=None), "unknown no_position"),
        (
            "no position, but canaries arrive",
            replace(IDLE, backlog=None, canary_arrival_age=3.0),
            "running canaries_arrive",
        ),
    ],
)
def test_flow_state_follows_evidence(case: str, evidence: FlowEvidence, expected: str) -> None:
    found = flow_state(evidence, TIMEOUTS)
    assert f"{found.name} {found.reason}" == expected, case


def test_flow_state_with_committed_position_allows_flush_interval() -> None:
    committed = replace(TIMEOUTS, position_period=60.0)
    waiting = replace(BUSY, progress_age=89.0, stalled_for=89.0)
    assert flow_state(waiting, committed).name is FlowStateName.RUNNING
    later = replace(BUSY, progress_age=90.0, stalled_for=90.0)
    assert flow_state(later, committed).name is FlowStateName.STOPPED


def test_canary_timeout_is_deadline_up_to_30_seconds() -> None:
    assert StateTimeouts(canary_deadline=5.0).canaries == 5.0
    assert StateTimeouts(canary_deadline=60.0).canaries == 30.0


AGES = st.none() | st.floats(0.0, 1000.0)


@given(
    evidence=st.builds(
        FlowEvidence,
        ready=st.booleans(),
        source_readable=st.booleans(),
        target_readable=st.booleans(),
        backlog=st.none() | st.booleans(),
        progress_age=AGES,
        stalled_for=AGES,
        source_moving=st.none() | st.booleans(),
        canary_silence=AGES,
        canary_arrival_age=AGES,
        heartbeat_age=AGES,
        connector_running=st.none() | st.booleans(),
    )
)
def test_flow_state_while_unobservable_is_never_stopped_or_idle(evidence: FlowEvidence) -> None:
    found = flow_state(evidence, TIMEOUTS).name
    if not (evidence.ready and evidence.source_readable and evidence.target_readable):
        assert found in {FlowStateName.UNKNOWN, FlowStateName.RUNNING}
    if not evidence.target_readable or not evidence.ready:
        assert found is FlowStateName.UNKNOWN


STALL = 30.0


def watch(samples: list[tuple[float, int | None, int | None]], period: float = 0.0) -> list[str]:
    watched = StallWatch()
    return [watched.observe(at, lag, pos, STALL, period).value for at, lag, pos in samples]


def test_backlog_without_advance_is_stalled_after_stall_after() -> None:
    assert watch([(0, 5, 10), (29.9, 6, 10), (30, 6, 10), (60, 9, 10)]) == [
        "moving",
        "moving",
        "stalled",
        "stalled",
    ]


def test_advance_ends_stall_and_restarts_clock() -> None:
    assert watch([(0, 5, 10), (40, 5, 10), (45, 5, 11), (70, 5, 11), (75, 5, 11)]) == [
        "moving",
        "stalled",
        "moving",
        "moving",
        "stalled",
    ]


def test_first_record_after_idle_hours_is_not_stalled() -> None:
    assert watch([(0, 0, 10), (7200, 0, 10), (7205, 3, 10), (7235, 3, 10)]) == [
        "idle",
        "idle",
        "moving",
        "stalled",
    ]


def test_missing_samples_neither_start_nor_stop_stall_clock() -> None:
    assert watch([(0, 5, 10), (20, None, None), (40, 5, 10)]) == ["moving", "unknown", "stalled"]


def test_position_going_back_restarts_stall_clock() -> None:
    assert watch([(0, 5, 10), (25, 9, 6), (50, 9, 6), (55, 9, 6)]) == [
        "moving",
        "moving",
        "moving",
        "stalled",
    ]


def test_committed_position_allows_flush_interval() -> None:
    assert watch([(0, 5, 10), (89, 5, 10), (90, 5, 10)], period=60.0) == [
        "moving",
        "moving",
        "stalled",
    ]


def test_progress_at_is_last_advance_or_last_sample_without_backlog() -> None:
    watched = StallWatch()
    seen: list[float | None] = [watched.progress_at]
    for at, lag, position in ((0.0, 5, 10), (5.0, 4, 11), (10.0, 9, 8), (15.0, 0, 17)):
        watched.observe(at, lag, position, STALL)
        seen.append(watched.progress_at)
    assert seen == [None, None, 5.0, 5.0, 15.0]


# (at, records appended to the source, to the target): start of the backlog.
Rounds = list[tuple[float, int, int]]


@pytest.mark.parametrize(
    ("case", "rounds", "backlog_since", "moved_at"),
    [
        ("both grow", [(0, 0, 0), (10, 5, 5), (50, 9, 9)], None, 50),
        ("neither grows", [(0, 0, 0), (100, 0, 0)], None, None),
        ("the target grows first", [(0, 0, 0), (10, 0, 5), (20, 5, 5), (90, 5, 5)], None, 10),
        ("the target grows later", [(0, 0, 0), (31, 5, 0), (40, 5, 5)], None, 40),
        ("the target stops growing", [(0, 0, 0), (10, 5, 5), (41, 9, 5), (80, 10, 5)], 41, 10),
        ("within the grace period", [(0, 0, 0), (10, 5, 5), (40, 9, 5)], None, 10),
        ("from the start on", [(0, 0, 0), (10, 5, 0), (31, 6, 0)], 31, None),
        ("until it grows", [(0, 0, 0), (31, 5, 0), (60, 6, 1)], None, 60),
        ("an idle source after", [(0, 0, 0), (31, 5, 0), (99, 5, 0)], 31, None),
        ("always fewer on the target", [(0, 0, 0), (60, 90, 30), (120, 180, 60)], None, 120),
    ],
)
def test_backlog_starts_when_source_grows_after_grace_period(
    case: str, rounds: Rounds, backlog_since: float | None, moved_at: float | None
) -> None:
    watch = TopicActivityWatch(grace=30.0)
    for at, source, target in rounds:
        watch.observe(at, source, target)
    assert (watch.backlog_since, watch.moved_at) == (backlog_since, moved_at), case
