"""The status that decides the color and icon of a flow on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.reporting.entry_order import worst_first

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.reporting.report_entry import Entry

_OF_FLOW_STATES = {"stopped": Status.BREACHED, "unknown": Status.NO_DATA}


def worst_status(entries: Iterable[Entry]) -> Status | None:
    """The worst status of *entries*; None without any."""
    ordered = worst_first(entries)
    return ordered[0].status if ordered else None


def flow_display_status(state: str | None, worst: Status | None) -> Status:
    """A stopped flow shows as breached, an unknown one as no data."""
    own = _OF_FLOW_STATES.get(state or "")
    if own is Status.BREACHED or worst is None:
        return own or (Status.NO_DATA if state is None else Status.MET)
    if own is Status.NO_DATA and worst in {Status.MET, Status.IDLE}:
        return own
    return worst


def flow_text(state: str | None, worst: Status | None) -> str:
    """`running`, `running, breached`: the flow state, and the status of its objectives."""
    status = None if worst is None else worst.value.replace("_", " ")
    if state is None:
        return status or "unknown"
    return state if worst in {None, Status.MET, Status.IDLE} else f"{state}, {status}"
