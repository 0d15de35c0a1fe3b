"""Recording rules: from event counters to error ratios, burn rates and remaining budgets.

Counts are recorded and divided last: five quiet minutes must not weigh as much as five busy ones.
Rules that must be consistent are in one group, which Prometheus evaluates in order at one instant;
a group has at most 20 rules, Mimir's default limit:

- `mm2slo-objectives`, every 30 seconds: targets and windows; more groups for more objectives;
- `mm2slo-events`, every 30 seconds: increases over 5m and 1h, error ratios;
- `mm2slo-steps`, every 5 minutes: increases over 5 minutes, their sums over 2h and 6h, coverage;
- `mm2slo-days`, every 5 minutes: sums of steps over 1d and 3d;
- `mm2slo-window`, every 5 minutes: sums over the objective's window, and the budget.

Every recorded series may be one evaluation old, also in its own group (vmalert with remote write):
those of 5-minute groups are read over ranges, and no count is subtracted from a recorded one.

The rule file of planned maintenance is here too: its series shows the other rules which time to
leave out. A counter does not say when its events happened, so that time is left out in steps of
five minutes: a step is excluded if maintenance was active in it or in the two before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from mm2slo_alerts.alert_rules import (
    HEADER,
    PRODUCTION,
    Group,
    RecordingRule,
    Scale,
    prometheus_text,
)
from mm2slo_alerts.objective_series import (
    EVENTS_INTERVAL,
    STEP,
    objective_series,
    samples_within,
    seconds,
)
from mm2slo_core.catalogue.flow_metrics import (
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)
from mm2slo_core.catalogue.metric import FLOW_LABELS, Metric
from mm2slo_core.catalogue.prometheus_series import (
    BAD_INCREASE,
    BAD_STEP,
    BAD_SUM,
    BUDGET_REMAINING,
    BURN,
    CHAIN_WINDOWS,
    COVERAGE,
    DIRECT_WINDOWS,
    DUE_STEP,
    ERROR,
    EVENTS_INCREASE,
    EVENTS_STEP,
    EVENTS_SUM,
    EXCLUDED_STEP,
    LONG_WINDOWS,
    MAINTENANCE_ACTIVE,
    MEASURED,
    OBJECTIVE,
    OBJECTIVE_WINDOW,
    SETTLES,
    SLI_LABELS,
    UNKNOWN_STEP,
    WINDOW,
    RecordedSeries,
)
from mm2slo_core.catalogue.promql import Vector, aggregate, number, on, over, select
from mm2slo_core.objectives.exclusion import Exclusion, Span, excluded_from_rules
from mm2slo_core.objectives.objective import DEFAULT_WINDOW, ObjectiveRule
from mm2slo_core.topology import Flow

_MOST_RULES: Final = 20
"""Mimir's default of `-ruler.max-rules-per-rule-group`."""

_HOUR: Final = "1h"
_SHORTEST: Final = "5m"
"""Longer windows that touch maintenance are sums of this one."""

_HOURS, _DAYS = CHAIN_WINDOWS[:2], CHAIN_WINDOWS[2:]


def recording_groups(
    rules: Sequence[ObjectiveRule], scale: Scale = PRODUCTION
) -> tuple[Group, ...]:
    """Return the groups for objectives *rules*; the first that matches a flow applies."""
    often, seldom = scale(EVENTS_INTERVAL), scale(STEP)
    windows = (rule for window in DIRECT_WINDOWS for rule in _window(window, scale))
    of_hours = (*_steps(scale), *_chains(_HOURS, scale), _hour_coverage(scale))
    return (
        *_objective_groups(objective_series(rules, scale), often),
        Group(name="mm2slo-events", interval=often, rules=tuple(windows)),
        Group(name="mm2slo-steps", interval=seldom, rules=of_hours),
        Group(name="mm2slo-days", interval=seldom, rules=tuple(_chains(_DAYS, scale))),
        Group(
            name="mm2slo-window",
            interval=seldom,
            rules=tuple(_budget_rules(sorted({rule.window for rule in rules}), scale)),
        ),
    )


def _objective_groups(rules: Sequence[RecordingRule], interval: float) -> Iterator[Group]:
    """Targets do not change between evaluations, so any group may read another's."""
    for part, start in enumerate(range(0, len(rules), _MOST_RULES), 1):
        yield Group(
            name="mm2slo-objectives" + f"-{part}" * (part > 1),
            interval=interval,
            rules=tuple(rules[start : start + _MOST_RULES]),
        )


def _average_increase(metric: Metric, length: float, scale: Scale) -> Vector:
    """Return the increase of *metric* in *length* seconds, averaged over the replicas.

    Averaging bad and all events keeps their ratio and counts no event twice.
    """
    # First increase(), then the average: a restart is only seen as a reset of a counter within one
    # series, and increase() over an average would count a joining replica as events (Prometheus's
    # documentation of rate(): always take a rate before aggregating).
    return aggregate("avg", over("increase", metric, scale(length)), SLI_LABELS)


def _bad_events(events: RecordedSeries, length: float, scale: Scale) -> str:
    """Return all events minus good ones; without a counter of good events all are bad.

    At least 0: after a restart only one of the two counters may exceed its old value. Both counters
    are read here: the recorded *events* may be one evaluation old, and serve as a zero only.
    """
    total, good = (
        _average_increase(counter, length, scale)
        for counter in (SLI_EVENTS_TOTAL, SLI_GOOD_EVENTS_TOTAL)
    )
    return (
        f"clamp_min(\n  {total}\n  - ({good} or 0 * {select(events)}),\n  0\n)\n"
        f"{_untouched(length, scale)}"
    )


def _window(window: str, scale: Scale) -> Iterator[RecordingRule]:
    """Return events, bad events, error ratio and burn rate of a direct window."""
    events, bad, length = EVENTS_INCREASE[window], BAD_INCREASE[window], seconds(window)
    all_events = _average_increase(SLI_EVENTS_TOTAL, length, scale)
    counted = {
        events: f"{all_events}\n{_untouched(length, scale)}",
        bad: _bad_events(events, length, scale),
    }
    for series, inner in ((events, EVENTS_INCREASE), (bad, BAD_INCREASE)):
        expr = counted[series]
        if window != _SHORTEST:
            sums = _without_maintenance(inner[_SHORTEST], length, scale)
            expr = f"(\n{expr}\n)\nor\n{sums}"
        yield RecordingRule(record=series.name, expr=expr)
    share = ""
    if window in LONG_WINDOWS:
        # Such a window is read from the counters: what counts is its evaluations, not steps.
        evaluations = samples_within(length, EVENTS_INTERVAL, scale)
        measured = over("count_over_time", EVENTS_INCREASE[_SHORTEST], evaluations)
        yield RecordingRule(record=MEASURED[window].name, expr=str(measured))
        share = _share_of_half_minutes(window, scale)
    yield from _error_ratio_rules(window, events, bad, share)


def _without_maintenance(inner: RecordedSeries, length: float, scale: Scale) -> str:
    """Sum recorded increases, which leave out maintenance.

    They overlap: each event is in ten of them in production.
    """
    parts = over("sum_over_time", inner, samples_within(length, EVENTS_INTERVAL, scale))
    overlap = number(seconds(_SHORTEST) / EVENTS_INTERVAL)
    return f"{parts} / {overlap}\n{_touched(length, scale)}"


def _steps(scale: Scale) -> Iterator[RecordingRule]:
    """Return the steps without maintenance; excluded events are counted apart."""
    events, free = _average_increase(SLI_EVENTS_TOTAL, STEP, scale), _untouched(STEP, scale)
    unknown = _average_increase(SLI_UNKNOWN_EVENTS_TOTAL, STEP, scale)
    yield RecordingRule(record=EVENTS_STEP.name, expr=f"{events}\n{free}")
    yield RecordingRule(record=BAD_STEP.name, expr=_bad_events(EVENTS_STEP, STEP, scale))
    yield RecordingRule(record=UNKNOWN_STEP.name, expr=f"{unknown}\n{free}")
    yield RecordingRule(record=EXCLUDED_STEP.name, expr=f"{events}\n{_touched(STEP, scale)}")
    yield RecordingRule(record=DUE_STEP.name, expr=_due_steps(scale))


def _chains(windows: Sequence[str], scale: Scale) -> Iterator[RecordingRule]:
    """Return sums, error ratio and burn rate of each of *windows*."""
    for window in windows:
        length = seconds(window)
        events, bad = EVENTS_SUM[window], BAD_SUM[window]
        yield RecordingRule(record=events.name, expr=_sum_of_steps(EVENTS_STEP, length, scale))
        yield RecordingRule(record=bad.name, expr=_sum_of_steps(BAD_STEP, length, scale))
        share = ""
        if window in LONG_WINDOWS:
            measured = _count_of_steps(EVENTS_STEP, length, scale)
            yield RecordingRule(record=MEASURED[window].name, expr=measured)
            share = _share_of_steps(window, scale)
        yield from _error_ratio_rules(window, events, bad, share)


def _sum_of_steps(series: RecordedSeries, length: float, scale: Scale) -> str:
    """Sum the recorded steps of the last *length* seconds."""
    return str(over("sum_over_time", series, samples_within(length, STEP, scale)))


def _count_of_steps(series: RecordedSeries, length: float, scale: Scale) -> str:
    """Count the recorded steps of the last *length* seconds."""
    return str(over("count_over_time", series, samples_within(length, STEP, scale)))


def _hour_coverage(scale: Scale) -> RecordingRule:
    """Return the known share of the last hour; 0 if no due step was recorded."""
    length = seconds(_HOUR)
    events = _sum_of_steps(EVENTS_STEP, length, scale)
    unknown = _sum_of_steps(UNKNOWN_STEP, length, scale)
    scraped = _count_of_steps(EVENTS_STEP, length, scale)
    due = _count_of_steps(DUE_STEP, length, scale)
    return RecordingRule(
        record=COVERAGE[_HOUR].name,
        expr=f"{events}\n/ ({events} + ({unknown} or 0 * {events}) > 0)\n"
        f"* clamp_max({scraped} / {due}, 1)\nor\n0 * ({due} unless {scraped})",
    )


def _due_steps(scale: Scale) -> str:
    """An indicator is due if it had an objective a step earlier.

    Coverage thus starts with the indicator: the hour before a new flow is not missing. A flow that
    disappears is missing while its objective is still recorded.
    """
    now = aggregate("max", select(OBJECTIVE), SLI_LABELS)
    before = aggregate("max", select(OBJECTIVE, offset=scale(STEP)), SLI_LABELS)
    return f"0 * ({now} and {before}) + 1\n{_untouched(STEP, scale)}"


def _budget_rules(lengths: Sequence[float], scale: Scale) -> Iterator[RecordingRule]:
    """Return the rules for objectives whose windows have these *lengths* (seconds)."""
    if not lengths:
        return
    events, bad = EVENTS_SUM[WINDOW], BAD_SUM[WINDOW]
    for record, step in ((events, EVENTS_STEP), (bad, BAD_STEP)):
        yield RecordingRule(
            record=record.name,
            expr=_of_windows(lengths, partial(_sum_of_steps, step, scale=scale), scale),
        )
    yield RecordingRule(
        record=MEASURED[WINDOW].name,
        expr=_of_windows(lengths, partial(_count_of_steps, EVENTS_STEP, scale=scale), scale),
    )
    yield from _error_ratio_rules(WINDOW, events, bad, _measured_share(lengths, scale))
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
    excluded = _of_windows(lengths, partial(_count_of_steps, EXCLUDED_STEP, scale=scale), scale)
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
    unknown = _sum_of_steps(UNKNOWN_STEP, length, scale)
    due = _count_of_steps(DUE_STEP, length, scale)
    return (
        f"{events}\n/ ({events} + ({unknown} or 0 * {events}) > 0)\n"
        f"* clamp_max({select(MEASURED[WINDOW])} / {due}, 1)"
    )


def _error_ratio_rules(
    window: str, events: RecordedSeries, bad: RecordedSeries, share: str = ""
) -> Iterator[RecordingRule]:
    """Return both rules; without events there is no ratio, without an objective no burn rate.

    *share* multiplies the ratio by the measured share of a long window.
    """
    yield RecordingRule(record=ERROR[window].name, expr=f"{select(bad)}\n/ ({select(events)} > 0)")
    # After a restart with another owner, both series are there for five minutes (staleness).
    error, objective = select(ERROR[window]), aggregate("max", select(OBJECTIVE), SLI_LABELS)
    yield RecordingRule(
        record=BURN[window].name,
        expr=f"{error}{share}\n/ {on(SLI_LABELS, error, objective)} (1 - {objective})",
    )


def _share_of_steps(window: str, scale: Scale) -> str:
    """Return the factor of a sum of steps: measured steps of those without maintenance."""
    measured = select(MEASURED[window])
    steps = number(seconds(window) / STEP)
    excluded = _count_of_steps(EXCLUDED_STEP, seconds(window), scale)
    return f"\n* {measured} / ({steps} - ({excluded} or 0 * {measured}))"


def _share_of_half_minutes(window: str, scale: Scale) -> str:
    """Return the factor of a window that is read from the counters.

    At most 1, because excluded steps are recorded up to a step late.
    """
    measured = select(MEASURED[window])
    parts = number(seconds(window) / EVENTS_INTERVAL)
    steps = _count_of_steps(EXCLUDED_STEP, seconds(window), scale)
    excluded = f"{number(STEP / EVENTS_INTERVAL)} * {steps}"
    return f"\n* clamp_max({measured} / ({parts} - ({excluded} or 0 * {measured})), 1)"


_ON = f"on ({', '.join(FLOW_LABELS)})"


def _untouched(window: float, scale: Scale) -> str:
    """End of an expression that drops flows with maintenance in the last *window* seconds."""
    return f"unless {_ON} {_maintenance_within(window, scale)}"


def _touched(window: float, scale: Scale) -> str:
    """End of an expression that keeps flows with maintenance in the last *window* seconds."""
    return f"and {_ON} {_maintenance_within(window, scale)}"


def _maintenance_within(window: float, scale: Scale) -> str:
    return str(over("present_over_time", MAINTENANCE_ACTIVE, scale(window) + scale(SETTLES)))


MAINTENANCE_INTERVAL: Final = 30.0
"""Seconds between two evaluations; start and end of an exclusion are rounded up to it."""
_NOTE: Final = "# Written by `mm2slo exclude` from the results store; do not edit.\n"


def maintenance_groups(
    exclusions: Iterable[Exclusion],
    flows: Iterable[Flow],
    now: int | None = None,
    *,
    window: float = DEFAULT_WINDOW,
    scale: Scale = PRODUCTION,
    namespace: str | None = None,
) -> tuple[Group, ...]:
    """Return one group with a rule per excluded flow of *flows*; no group without an exclusion.

    With *now* (epoch ms), exclusions that ended more than *window* seconds ago are left out; pass
    the longest window of the objectives. Exclusions of one flow share a rule: two rules that record
    the same series would make each other's samples stale. *scale* shortens the interval only; other
    rules read the series of their *namespace*.
    """
    known = tuple(exclusions)
    oldest = None if now is None else now - round(window * 1000)
    rules = []
    for flow in sorted(flows):
        spans = [
            span for span in excluded_from_rules(known, flow) if oldest is None or span.end > oldest
        ]
        if spans:
            rules.append(
                RecordingRule(
                    record=MAINTENANCE_ACTIVE.name,
                    expr=_during(spans),
                    labels={
                        "flow": flow.label,
                        "source": flow.source,
                        "target": flow.target,
                        **({} if namespace is None else {"namespace": namespace}),
                    },
                )
            )
    if not rules:
        return ()
    return (
        Group(name="mm2slo-maintenance", interval=scale(MAINTENANCE_INTERVAL), rules=tuple(rules)),
    )


def maintenance_text(found: Iterable[Group]) -> str:
    """Return the rule file of *found*; Prometheus also loads one without groups."""
    return _NOTE + prometheus_text(found).removeprefix(HEADER)


def _during(spans: Sequence[Span]) -> str:
    either = "\n  or ".join(
        f"vector(time()) >= {_seconds(span.start)} < {_seconds(span.end)}" for span in spans
    )
    return f"vector(1) and (\n  {either}\n)"


def _seconds(epoch_ms: int) -> str:
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return f"{seconds}.{milliseconds:03}".rstrip("0").rstrip(".") if milliseconds else f"{seconds}"
