"""Error ratio and burn rate of a window, from its counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.rule_model import RecordingRule
from mm2slo_core.catalogue import BURN, ERROR, OBJECTIVE, SLI_LABELS
from mm2slo_core.promql import on, select

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_core.catalogue import RecordedSeries


def error_ratio_rules(
    window: str, events: RecordedSeries, bad: RecordedSeries, share: str = ""
) -> Iterator[RecordingRule]:
    """Return both rules; without events there is no ratio, without an objective no burn rate.

    *share* multiplies the ratio by the measured share of a long window.
    """
    yield RecordingRule(record=ERROR[window].name, expr=f"{select(bad)}\n/ ({select(events)} > 0)")
    error, objective = select(ERROR[window]), select(OBJECTIVE)
    yield RecordingRule(
        record=BURN[window].name,
        expr=f"{error}{share}\n/ {on(SLI_LABELS, error, objective)} (1 - {objective})",
    )
