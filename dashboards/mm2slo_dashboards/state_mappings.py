"""States as codes, texts and colours; the most severe has the highest code."""

from __future__ import annotations

from typing import Final

from mm2slo_core.flow_state import FlowStateName
from mm2slo_core.records.connect_status import ConnectState
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import State, Thresholds

FLOW_STATES: Final = (
    State(0, FlowStateName.RUNNING.value, Colour.GOOD),
    State(1, FlowStateName.IDLE.value, Colour.RESTING),
    State(2, FlowStateName.UNKNOWN.value, Colour.UNKNOWN),
    State(3, FlowStateName.STOPPED.value, Colour.BAD),
)
CONNECT_STATES: Final = tuple(
    State(code, state.value.lower(), colour)
    for code, (state, colour) in enumerate(
        (
            (ConnectState.RUNNING, Colour.GOOD),
            (ConnectState.RESTARTING, Colour.RESTING),
            (ConnectState.UNASSIGNED, Colour.WARNING),
            (ConnectState.PAUSED, Colour.PLANNED),
            (ConnectState.STOPPED, Colour.BAD),
            (ConnectState.DESTROYED, Colour.UNKNOWN),
            (ConnectState.FAILED, Colour.BAD),
        )
    )
)
ALERT_SCOPES: Final = tuple(
    State(code, text, Colour.NEUTRAL)
    for code, text in enumerate(("monitoring", "cluster", "flow", "objective"), start=1)
)
"""A cause precedes its consequences."""
READY_STATES: Final = (State(0, "blocked", Colour.BAD), State(1, "ready", Colour.GOOD))
UP_STATES: Final = (State(0, "down", Colour.BAD), State(1, "up", Colour.GOOD))

NEUTRAL: Final = Thresholds(Colour.NEUTRAL)
"""For values without an objective."""
BAD_FROM_ONE: Final = Thresholds(Colour.GOOD, ((1.0, Colour.BAD),))
WARN_FROM_ONE: Final = Thresholds(Colour.GOOD, ((1.0, Colour.WARNING),))


def bad_from(limit: float) -> Thresholds:
    """Good below *limit*, bad from it on."""
    return Thresholds(Colour.GOOD, ((limit, Colour.BAD),))


def good_from(limit: float) -> Thresholds:
    """Bad below *limit*, good from it on."""
    return Thresholds(Colour.BAD, ((limit, Colour.GOOD),))


def state_colours(states: tuple[State, ...]) -> dict[str, Colour]:
    """The colour of each state by its text, for series named after it."""
    return {state.text: state.colour for state in states}
