"""States as codes, words and colours, the same on every board; the gravest has the top code."""

from __future__ import annotations

from typing import Final

from mm2slo_core.flow_state import FlowStateName
from mm2slo_core.records.status import ConnectState
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import State, Steps

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
READY: Final = (State(0, "not ready", Colour.BAD), State(1, "ready", Colour.GOOD))
UP: Final = (State(0, "down", Colour.BAD), State(1, "up", Colour.GOOD))

NEUTRAL: Final = Steps(Colour.NEUTRAL)
"""A figure that no objective judges."""
NONE_IS_GOOD: Final = Steps(Colour.GOOD, ((1.0, Colour.BAD),))
NONE_IS_BEST: Final = Steps(Colour.GOOD, ((1.0, Colour.WARNING),))


def up_to(limit: float) -> Steps:
    """Good below *limit*, bad from it on."""
    return Steps(Colour.GOOD, ((limit, Colour.BAD),))


def at_least(limit: float) -> Steps:
    """Bad below *limit*, good from it on."""
    return Steps(Colour.BAD, ((limit, Colour.GOOD),))


def colours(states: tuple[State, ...]) -> dict[str, Colour]:
    """The colour of each state by its word, for series that are named by it."""
    return {state.word: state.colour for state in states}
