"""Alerts about objectives: burning and exhausted error budgets, low coverage.

They read recorded series. One rule per pair of windows, all with the name `MM2ErrorBudgetBurn`; the
label `window` distinguishes them. A rule fires when both windows burn faster than the pair's factor
and the long one holds enough bad events, so that a single one never alerts.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from mm2slo_alerts.alert_rules import (
    NO_LINKS,
    PRODUCTION,
    AlertSubject,
    Group,
    Scale,
)
from mm2slo_alerts.alert_thresholds import DEFAULT_THRESHOLDS, Thresholds
from mm2slo_alerts.cause_model import TICKET, Cause, interrupted, latest
from mm2slo_alerts.objective_series import LATE_STEP
from mm2slo_core.catalogue.flow_metrics import FLOW_OBSERVED_TIMESTAMP_SECONDS
from mm2slo_core.catalogue.prometheus_series import (
    BAD_INCREASE,
    BAD_SUM,
    BUDGET_REMAINING,
    BURN,
    COVERAGE,
    DIRECT_WINDOWS,
    EVENTS_STEP,
    FLOW_UNREACHABLE,
    OBJECTIVE,
    OBJECTIVE_WINDOW,
    SLI_LABELS,
    UNKNOWN_STEP,
    WINDOW,
    WINDOW_SECONDS,
    RecordedSeries,
)
from mm2slo_core.catalogue.promql import Vector, duration, equal, matching, number, over, select
from mm2slo_core.config.alerting_config import LinksConfig
from mm2slo_core.objectives.objective import (
    WINDOW_PAIRS,
    ObjectiveRule,
    Severity,
    WindowPair,
    dead_pairs,
    threshold,
)

ALERT: Final = "MM2ErrorBudgetBurn"

STOP_SLIS: Final = "availability|latency|data_freshness|checkpoint_freshness"
"""Indicators that are bad while a flow is stopped or works off its backlog."""

ON: Final = f"on ({', '.join(SLI_LABELS)})"

WINDOW_NAMES: Final[Mapping[float, str]] = {
    seconds: name for name, seconds in WINDOW_SECONDS.items()
}

_MIN_BAD: Final = max(pair.min_bad for pair in WINDOW_PAIRS)
"""The first bad event of a new flow already exceeds its budget and must not alert."""
_SUBJECT: Final = (
    '{{ $labels.flow }}: {{ reReplaceAll "_" " " $labels.sli }}'
    '{{ if and (ne $labels.tier "all") (ne $labels.tier "default") }} {{ $labels.tier }}{{ end }}'
)
_MATCHERS: Final = "{flow=%q, sli=%q, tier=%q}"


def burn_groups(
    thresholds: Thresholds = DEFAULT_THRESHOLDS,
    links: LinksConfig = NO_LINKS,
    scale: Scale = PRODUCTION,
) -> tuple[Group, ...]:
    """Return one group, the fastest pair first; *thresholds* are not scaled yet."""
    limits = thresholds.scaled(scale)
    return (
        Group(
            name="mm2slo-burn",
            interval=limits.interval,
            rules=(
                *(_burning(pair, limits, scale).rule(links) for pair in WINDOW_PAIRS),
                _exhausted(limits, scale).rule(links),
                _coverage_low(limits, scale).rule(links),
            ),
        ),
    )


def _burning(pair: WindowPair, limits: Thresholds, scale: Scale) -> Cause:
    """The alert of *pair*, which is not scaled yet; *limits* are.

    Its value is the burn rate of the long window.
    """
    long_name, short_name = WINDOW_NAMES[pair.long], WINDOW_NAMES[pair.short]
    rate = (
        '{{ if lt $value 100.0 }}{{ printf "%.3g" $value }}'
        '{{ else }}{{ printf "%.0f" $value }}{{ end }}'
    )
    return Cause(
        name=ALERT,
        severity=pair.severity.value,
        labels={"window": long_name},
        subject=AlertSubject.OBJECTIVE,
        expr=_expr(pair, limits, scale),
        hold=scale(pair.hold),
        keep=scale(pair.keep),
        summary=f"{_SUBJECT} is burning error budget at {rate}x the sustainable rate "
        f"({long_name} and {short_name} windows)",
        impact=_remaining(scale),
        action="Query mm2_flow_state and mm2_task_state of the flow, then follow the runbook for "
        "this SLI.",
    )


def burn_notices(rules: Iterable[ObjectiveRule]) -> tuple[str, ...]:
    """Return a sentence for each pair that can never fire for one of the objectives *rules*."""
    return tuple(
        f"{ALERT} ({WINDOW_NAMES[pair.long]}) can never fire for {rule.key.sli.value} "
        f"({rule.key.tier}) of "
        f"{', '.join(rule.flows)}: with a target of {number(rule.target)} over "
        f"{number(rule.window / 86_400)} days it needs an error ratio above "
        f"{number(threshold(pair, rule.target, rule.window))}"
        for rule in rules
        for pair in dead_pairs(rule)
    )


def _expr(pair: WindowPair, limits: Thresholds, scale: Scale) -> str:
    # A pair alerts when it spends its share of the budget, such as 2 % in an hour (SRE workbook,
    # "Alerting on SLOs"). The factor for that grows with the objective's window, so the rule reads
    # the window's series; `MIN_FACTOR` keeps short windows from alerting on a healthy flow.
    factor = f"> {ON} {pair.factor_query(select(OBJECTIVE_WINDOW), scale(pair.long))}"
    family = BAD_INCREASE if WINDOW_NAMES[pair.long] in DIRECT_WINDOWS else BAD_SUM
    conditions = (
        f"  {window_value(BURN, pair.long, scale)} {factor}\n"
        f"  and {ON} ({window_value(BURN, pair.short, scale)} {factor})\n"
        f"  and {ON} {window_value(family, pair.long, scale)} >= {pair.min_bad}\n"
        f"  unless on (flow, sli) ({select(OBJECTIVE, matching('sli', STOP_SLIS))} and on (flow) "
        f"{interrupted(max(scale(pair.short), limits.outage_memory))})"
    )
    return with_owner(conditions, pair.severity if pair.severity is Severity.PAGE else None)


def _exhausted(limits: Thresholds, scale: Scale) -> Cause:
    """Fires when no error budget remains; the value is the spent share, 1 or more."""
    left, bad = long(BUDGET_REMAINING, scale), long(BAD_SUM[WINDOW], scale)
    return Cause(
        name="MM2ErrorBudgetExhausted",
        severity=TICKET,
        subject=AlertSubject.OBJECTIVE,
        expr=with_owner(f"  1 - {left} >= 1\n  and {ON} {bad} >= {_MIN_BAD}"),
        hold=limits.exhausted_hold,
        summary=f"{_SUBJECT} error budget is overspent by {_percent('$value', '100 * %f - 100')} %",
        impact="The objective is not met, and stays so until the bad events leave its window.",
        action="Find out on the dashboard when the budget was spent, and postpone risky changes to "
        "the flow.",
    )


def _coverage_low(limits: Thresholds, scale: Scale) -> Cause:
    """Fires when too few events of the last hour can be measured, and of the last step as well.

    The value is the known share. A flow that is not observed at all has its own alert, and so has
    an unreachable cluster.
    """
    known, observed = long(COVERAGE["1h"], scale), latest(FLOW_OBSERVED_TIMESTAMP_SECONDS, limits)
    away = over("present_over_time", FLOW_UNREACHABLE, limits.outage_memory)
    events, unknown = long(EVENTS_STEP, scale), long(UNKNOWN_STEP, scale)
    return Cause(
        name="MM2SLOCoverageLow",
        severity=TICKET,
        subject=AlertSubject.OBJECTIVE,
        expr=with_owner(
            f"  {known} < {number(limits.coverage_min)}\n"
            f"  unless {ON} {events} * {number(1 - limits.coverage_min)} "
            f">= ({unknown} or 0 * {events}) * {number(limits.coverage_min)}\n"
            f"  and on (flow) {observed} > time() - {number(limits.observed_age)}\n"
            f"  unless on (flow) {away}"
        ),
        hold=limits.coverage_hold,
        summary=f"{_SUBJECT} coverage is {{{{ $value | humanizePercentage }}}} of the last hour",
        impact="A fault may go unnoticed, and whether the objective is met is unknown.",
        action="Query mm2_exporter_collect_errors_total by cluster and stage for what the exporter "
        "cannot read.",
    )


def _remaining(scale: Scale) -> str:
    """A sentence with the error budget that is left, which the alert's own value does not hold."""
    value = ". | first | value"
    remaining = f"last_over_time({BUDGET_REMAINING.name}{_MATCHERS}[{duration(scale(LATE_STEP))}])"
    return (
        f'{{{{ with printf "{remaining}" $labels.flow $labels.sli $labels.tier | query }}}}'
        f"{{{{ if lt ({value}) 0.0 }}}}The error budget is overspent by "
        f"{_percent(value, '-100 * %f')} %"
        f"{{{{ else }}}}{{{{ {value} | humanizePercentage }}}} of the error budget is left"
        "{{ end }}{{ else }}The remaining error budget is unknown{{ end }}."
    )


def _percent(value: str, formula: str) -> str:
    """Prometheus's templates have no arithmetic of their own: a query of a number calculates."""
    return f'{{{{ printf "%.0f" (printf "{formula}" ({value}) | query | first | value) }}}}'


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

    To the power of 0, anything is 1, so the value stays the same. After a restart of Prometheus
    with another owner, both series are there for five minutes (staleness); the newest counts.
    """
    matchers = () if severity is None else (equal("severity", severity.value),)
    newest = f"topk by ({', '.join(SLI_LABELS)}) (1, timestamp({select(OBJECTIVE, *matchers)}))"
    return f"(\n{text}\n)\n* {ON} group_left (owner, channel) {newest} ^ 0"
