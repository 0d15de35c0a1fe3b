"""The objective's window: sums, remaining budget and coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.recording.error_ratio import error_ratio_rules
from mm2slo_alerts.recording.steps import count_of_steps, sum_of_steps
from mm2slo_alerts.rule_model import RecordingRule
from mm2slo_core.catalogue import (
    BAD_STEP,
    BAD_SUM,
    BUDGET_REMAINING,
    BURN,
    COVERAGE,
    DUE_STEP,
    EVENTS_STEP,
    EVENTS_SUM,
    OBJECTIVE_WINDOW,
    SLI_LABELS,
    UNKNOWN_STEP,
    WINDOW,
)
from mm2slo_core.promql import number, on, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from mm2slo_alerts.rule_model import Scale
    from mm2slo_core.catalogue import RecordedSeries


def budgets(windows: AbstractSet[float], scale: Scale) -> tuple[RecordingRule, ...]:
    """Return the rules for objectives with *windows* (seconds)."""
    return tuple(_rules(sorted(windows), scale)) if windows else ()


def _rules(windows: Iterable[float], scale: Scale) -> Iterator[RecordingRule]:
    lengths = tuple(windows)
    events, bad = EVENTS_SUM[WINDOW], BAD_SUM[WINDOW]
    yield RecordingRule(record=events.name, expr=_sums(EVENTS_STEP, lengths, scale))
    yield RecordingRule(record=bad.name, expr=_sums(BAD_STEP, lengths, scale))
    yield from error_ratio_rules(WINDOW, events, bad)
    yield RecordingRule(record=BUDGET_REMAINING.name, expr=f"1 - {select(BURN[WINDOW])}")
    yield RecordingRule(
        record=COVERAGE[WINDOW].name,
        expr="\nor\n".join(_coverage(length, scale) for length in lengths),
    )


def _sums(series: RecordedSeries, lengths: Iterable[float], scale: Scale) -> str:
    return "\nor\n".join(
        f"{sum_of_steps(series, length, scale)}\n{_with_window(length, scale)}"
        for length in lengths
    )


def _with_window(length: float, scale: Scale) -> str:
    """Keep the indicators whose objective has this window."""
    window = select(OBJECTIVE_WINDOW)
    return f"and {on(SLI_LABELS, window)} {window} == {number(scale(length))}"


def _coverage(length: float, scale: Scale) -> str:
    events = select(EVENTS_SUM[WINDOW])
    unknown = sum_of_steps(UNKNOWN_STEP, length, scale)
    scraped = count_of_steps(EVENTS_STEP, length, scale)
    due = count_of_steps(DUE_STEP, length, scale)
    return (
        f"{events}\n/ ({events} + ({unknown} or 0 * {events}) > 0)\n"
        f"* clamp_max({scraped} / {due}, 1)\n{_with_window(length, scale)}"
    )
