"""Excludes planned maintenance from the rules, in steps of five minutes.

A counter does not say when its events happened. A step is excluded if maintenance was active in its
five minutes or in the two before, whose events still settle. Longer windows that maintenance
touches are sums of the other steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.recording.rule_intervals import SETTLES
from mm2slo_core.catalogue import FLOW_LABELS, MAINTENANCE_ACTIVE
from mm2slo_core.promql import over

if TYPE_CHECKING:
    from mm2slo_alerts.rule_model import Scale

_ON = f"on ({', '.join(FLOW_LABELS)})"


def untouched(window: float, scale: Scale) -> str:
    """End of an expression that drops flows with maintenance in the last *window* seconds."""
    return f"unless {_ON} {_maintenance_within(window, scale)}"


def touched(window: float, scale: Scale) -> str:
    """End of an expression that keeps flows with maintenance in the last *window* seconds."""
    return f"and {_ON} {_maintenance_within(window, scale)}"


def _maintenance_within(window: float, scale: Scale) -> str:
    return str(over("present_over_time", MAINTENANCE_ACTIVE, scale(window) + scale(SETTLES)))
