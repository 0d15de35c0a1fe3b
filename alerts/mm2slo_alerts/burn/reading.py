"""What the alerts read: recorded series as they were last, with what the objective adds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_alerts.recording.timing import STEP
from mm2slo_core.catalogue import DIRECT_WINDOWS, OBJECTIVE, SLI_LABELS, WINDOW_SECONDS
from mm2slo_core.promql import Vector, equal, over, select

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_alerts.model import Scale
    from mm2slo_core.catalogue import RecordedSeries
    from mm2slo_core.objectives import Severity

ON: Final = f"on ({', '.join(SLI_LABELS)})"
WINDOW_NAMES: Final[Mapping[float, str]] = {
    seconds: name for name, seconds in WINDOW_SECONDS.items()
}


def short(series: RecordedSeries) -> Vector:
    """A series of the group that is evaluated every 30 seconds."""
    return select(series)


def long(series: RecordedSeries, scale: Scale) -> Vector:
    """A series that is recorded every 5 minutes.

    Prometheus looks back 5 minutes for a sample: between the instant at which the next one is due
    and the one at which it is written there would be none, and the alert would start anew.
    """
    return over("last_over_time", series, 2 * scale(STEP))


def of_window(series: Mapping[str, RecordedSeries], length: float, scale: Scale) -> Vector:
    """The one of *series* over a window of *length* seconds, in production."""
    name = WINDOW_NAMES[length]
    return short(series[name]) if name in DIRECT_WINDOWS else long(series[name], scale)


def told_to(text: str, worst: Severity | None = None) -> str:
    """*text* with the objective's owner and channel; with *worst*, of these objectives only.

    The objective to the power of 0 is 1: the value stays.
    """
    matchers = () if worst is None else (equal("severity", worst.value),)
    objective = select(OBJECTIVE, *matchers)
    return f"(\n{text}\n)\n* {ON} group_left (owner, channel) {objective} ^ 0"
