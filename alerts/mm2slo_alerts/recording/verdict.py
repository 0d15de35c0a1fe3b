"""Error ratio and burn rate of a window, from its counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.model import RecordingRule
from mm2slo_core.catalogue import BURN, ERROR, OBJECTIVE, SLI_LABELS
from mm2slo_core.promql import on, select

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.catalogue import RecordedSeries


def verdict(window: str, events: RecordedSeries, bad: RecordedSeries) -> Iterator[RecordingRule]:
    """No events, no ratio: an idle flow is neither perfect nor broken. No objective, no burn."""
    yield RecordingRule(record=ERROR[window].name, expr=f"{select(bad)}\n/ ({select(events)} > 0)")
    error, objective = select(ERROR[window]), select(OBJECTIVE)
    yield RecordingRule(
        record=BURN[window].name,
        expr=f"{error}\n/ {on(SLI_LABELS, error, objective)} (1 - {objective})",
    )
