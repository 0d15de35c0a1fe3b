"""The objective's own window: its sums, what is left of the budget, and how much is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_alerts.model import RecordingRule
from mm2slo_alerts.recording.steps import step_count, step_sum
from mm2slo_alerts.recording.verdict import verdict
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

    from mm2slo_alerts.model import Scale
    from mm2slo_core.catalogue import RecordedSeries


def budgets(windows: AbstractSet[float], scale: Scale) -> tuple[RecordingRule, ...]:
    """The rules for objectives whose windows are *windows* (seconds); none without any."""
    return tuple(_rules(sorted(windows), scale)) if windows else ()


def _rules(windows: Iterable[float], scale: Scale) -> Iterator[RecordingRule]:
    lengths = tuple(windows)
    events, bad = EVENTS_SUM[WINDOW], BAD_SUM[WINDOW]
    yield RecordingRule(record=events.name, expr=_sums(EVENTS_STEP, lengths, scale))
    yield RecordingRule(record=bad.name, expr=_sums(BAD_STEP, lengths, scale))
    yield from verdict(WINDOW, events, bad)
    yield RecordingRule(record=BUDGET_REMAINING.name, expr=f"1 - {select(BURN[WINDOW])}")
    yield RecordingRule(
        record=COVERAGE[WINDOW].name,
        expr="\nor\n".join(_coverage(length, scale) for length in lengths),
    )


def _sums(series: RecordedSeries, lengths: Iterable[float], scale: Scale) -> str:
    return "\nor\n".join(
        f"{step_sum(series, length, scale)}\n{_promised(length, scale)}" for length in lengths
    )


def _promised(length: float, scale: Scale) -> str:
    """Keeps the indicators whose objective has this window."""
    window = select(OBJECTIVE_WINDOW)
    return f"and {on(SLI_LABELS, window)} {window} == {number(scale(length))}"


def _coverage(length: float, scale: Scale) -> str:
    events = select(EVENTS_SUM[WINDOW])
    unknown = step_sum(UNKNOWN_STEP, length, scale)
    scraped = step_count(EVENTS_STEP, length, scale)
    due = step_count(DUE_STEP, length, scale)
    return (
        f"{events}\n/ ({events} + ({unknown} or 0 * {events}) > 0)\n"
        f"* clamp_max({scraped} / {due}, 1)\n{_promised(length, scale)}"
    )
