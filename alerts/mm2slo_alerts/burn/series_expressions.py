"""Expressions for the last values of recorded series, with labels of the objective."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.recording.rule_intervals import LATE_STEP
from mm2slo_core.catalogue import DIRECT_WINDOWS, OBJECTIVE, SLI_LABELS, WINDOW_SECONDS
from mm2slo_core.promql import Vector, equal, over, select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.rule_model import Scale
    from mm2slo_core.catalogue import RecordedSeries
    from mm2slo_core.objectives import Severity

ON: Final = f"on ({', '.join(SLI_LABELS)})"
WINDOW_NAMES: Final[Mapping[float, str]] = {
    seconds: name for name, seconds in WINDOW_SECONDS.items()
}


def long(series: RecordedSeries, scale: Scale) -> Vector:
    """Select a series that is recorded every 5 minutes.

    Prometheus's lookback is 5 minutes: until a due sample is written an instant selector would
    find no sample, and the alert would resolve.
    """
    return over("last_over_time", series, scale(LATE_STEP))


def window_value(series: Mapping[str, RecordedSeries], length: float, scale: Scale) -> Vector:
    """Select the one of *series* over a window of *length* seconds (not scaled)."""
    name = WINDOW_NAMES[length]
    return select(series[name]) if name in DIRECT_WINDOWS else long(series[name], scale)


def with_owner(text: str, severity: Severity | None = None) -> str:
    """Add the objective's owner and channel; with *severity*, for these objectives only.

    The objective to the power of 0 is 1, so the value stays the same.
    """
    matchers = () if severity is None else (equal("severity", severity.value),)
    objective = select(OBJECTIVE, *matchers)
    return f"(\n{text}\n)\n* {ON} group_left (owner, channel) {objective} ^ 0"
