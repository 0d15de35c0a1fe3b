"""The objective's window: sums, remaining budget and coverage."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mm2slo_alerts.recording.error_ratio import error_ratio_rules
from mm2slo_alerts.recording.measured_share import excluded_steps
from mm2slo_alerts.recording.rule_intervals import STEP
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
    MEASURED,
    OBJECTIVE_WINDOW,
    SLI_LABELS,
    UNKNOWN_STEP,
    WINDOW,
)
from mm2slo_core.promql import number, on, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from mm2slo_alerts.rule_model import Scale


def budgets(windows: AbstractSet[float], scale: Scale) -> tuple[RecordingRule, ...]:
    """Return the rules for objectives with *windows* (seconds)."""
    return tuple(_rules(sorted(windows), scale)) if windows else ()


def _rules(windows: Iterable[float], scale: Scale) -> Iterator[RecordingRule]:
    lengths = tuple(windows)
    events, bad = EVENTS_SUM[WINDOW], BAD_SUM[WINDOW]
    for record, step in ((events, EVENTS_STEP), (bad, BAD_STEP)):
        yield RecordingRule(
            record=record.name,
            expr=_of_windows(lengths, partial(sum_of_steps, step, scale=scale), scale),
        )
    yield RecordingRule(
        record=MEASURED[WINDOW].name,
        expr=_of_windows(lengths, partial(count_of_steps, EVENTS_STEP, scale=scale), scale),
    )
    yield from error_ratio_rules(WINDOW, events, bad, _measured_share(lengths, scale))
    yield RecordingRule(record=BUDGET_REMAINING.name, expr=f"1 - {select(BURN[WINDOW])}")
    yield RecordingRule(
        record=COVERAGE[WINDOW].name,
        expr=_of_windows(lengths, partial(_coverage, scale=scale), scale),
    )


def _of_windows(lengths: Iterable[float], expression: Callable[[float], str], scale: Scale) -> str:
    """The *expression* of each length, for the indicators whose objective has that window."""
    return "\nor\n".join(
        f"{expression(length)}\n{_with_window(length, scale)}" for length in lengths
    )


def _measured_share(lengths: Iterable[float], scale: Scale) -> str:
    measured, window = select(MEASURED[WINDOW]), select(OBJECTIVE_WINDOW)
    excluded = _of_windows(lengths, partial(excluded_steps, scale=scale), scale)
    return (
        f"\n* {measured}\n/ ({window} / {number(scale(STEP))} - (\n{excluded}\n"
        f"or 0 * {measured}\n))"
    )


def _with_window(length: float, scale: Scale) -> str:
    """Keep the indicators whose objective has this window."""
    window = select(OBJECTIVE_WINDOW)
    return f"and {on(SLI_LABELS, window)} {window} == {number(scale(length))}"


def _coverage(length: float, scale: Scale) -> str:
    events = select(EVENTS_SUM[WINDOW])
    unknown = sum_of_steps(UNKNOWN_STEP, length, scale)
    due = count_of_steps(DUE_STEP, length, scale)
    return (
        f"{events}\n/ ({events} + ({unknown} or 0 * {events}) > 0)\n"
        f"* clamp_max({select(MEASURED[WINDOW])} / {due}, 1)"
    )
