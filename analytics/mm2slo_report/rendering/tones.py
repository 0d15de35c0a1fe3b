"""Colour and shape of a state, one name for both: style.css and the templates know it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.objectives.status import Status
from mm2slo_core.reporting.order import worst_first

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.reporting.entry import Entry

_OF_FLOW_STATES = {"stopped": Status.BREACHED, "unknown": Status.NO_DATA}


def worst_status(entries: Iterable[Entry]) -> Status | None:
    """Of several entries; None without any."""
    ordered = worst_first(entries)
    return ordered[0].status if ordered else None


def flow_tone(state: str | None, worst: Status | None) -> Status:
    """A stopped flow is as bad as a breached promise, an unknown one is told as no data."""
    told = _OF_FLOW_STATES.get(state or "")
    if told is Status.BREACHED or worst is None:
        return told or (Status.NO_DATA if state is None else Status.OK)
    if told is Status.NO_DATA and worst in {Status.OK, Status.IDLE}:
        return told
    return worst


def flow_words(state: str | None, worst: Status | None) -> str:
    """`running`, `running, breached`: the flow's own state, and what is wrong beside it."""
    status = None if worst is None else worst.value.replace("_", " ")
    if state is None:
        return status or "not known"
    return state if worst in {None, Status.OK, Status.IDLE} else f"{state}, {status}"
