"""Planned maintenance as the rules see it: by windows that it touches, not by events.

A counter does not say when its events happened, so five minutes are the finest that can be left
out: an increment is excluded when maintenance was active in its five minutes or in the two before
them, in which events of the maintenance still settle. Of longer windows that it touches, the
recorded increments are summed instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.recording.timing import SETTLES
from mm2slo_core.catalogue import FLOW_LABELS, MAINTENANCE_ACTIVE
from mm2slo_core.promql import over

if TYPE_CHECKING:
    from mm2slo_alerts.model import Scale

_ON = f"on ({', '.join(FLOW_LABELS)})"


def untouched(window: float, scale: Scale) -> str:
    """The end of an expression: drops flows whose last *window* seconds maintenance touched."""
    return f"unless {_ON} {_touched(window, scale)}"


def touched(window: float, scale: Scale) -> str:
    """The end of an expression: keeps flows whose last *window* seconds maintenance touched."""
    return f"and {_ON} {_touched(window, scale)}"


def _touched(window: float, scale: Scale) -> str:
    return str(over("present_over_time", MAINTENANCE_ACTIVE, scale(window) + scale(SETTLES)))
