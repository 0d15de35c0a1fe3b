"""SLO dashboard: objectives, remaining budgets, burn rates and coverage."""

from typing import Final

from mm2slo_core.catalogue.prometheus_series import (
    BAD_STEP,
    BUDGET_REMAINING,
    BURN,
    COVERAGE,
    ERROR,
    EVENTS_STEP,
    EXCLUDED_STEP,
    OBJECTIVE,
    OBJECTIVE_WINDOW,
    UNKNOWN_STEP,
    WINDOW,
    WINDOW_SECONDS,
    RecordedSeries,
)
from mm2slo_core.catalogue.promql import Vector, select
from mm2slo_core.link_targets import DashboardUid
from mm2slo_core.objectives.objective import WINDOW_PAIRS, WindowPair
from mm2slo_dashboards.dashboard_model import (
    BAD_FROM_ONE,
    LINES,
    Colour,
    Dashboard,
    Kind,
    Panel,
    PanelUnit,
    Row,
    TableColumn,
    Variable,
    bad_from,
    good_from,
)
from mm2slo_dashboards.panel_definitions import (
    FLEET_DATA_POINTS,
    FLOW_ANNOTATIONS,
    LEAST_BUDGET,
    NO_BUDGET_DATA,
    OVERSPENT,
    ObjectiveLimits,
    budget_column,
    budget_thresholds,
    burn_column,
    by_objective,
)
from mm2slo_dashboards.panel_queries import (
    FLOWS_VARIABLE,
    MATCH_FLOW,
    bottomk,
    match_variable,
    max_by,
    min_by,
    readable_sli,
    recorded_series,
    sum_by,
    sum_over_steps,
    topk,
)

_SLIS: Final = Variable(name="sli", title="SLI", label="sli", series=select(OBJECTIVE, MATCH_FLOW))
_MATCH_SLI: Final = match_variable("sli")
_KEYS: Final = ("flow", "sli", "tier")
_NAMED: Final = "{{flow}} {{sli}} {{tier}}"

_STEP: Final = 300.0
"""Seconds of a recorded step: the least distance of two points that sum steps."""
_NO_STEP: Final = "No event settled in this time range, or the recording rules are not loaded."


def build(limits: ObjectiveLimits) -> Dashboard:
    """The objectives, the smallest remaining budget first."""
    return Dashboard(
        uid=DashboardUid.SLO,
        title="MirrorMaker 2 / SLO",
        description="Which objectives are met, how much error budget is left, and what spends it?",
        variables=(FLOWS_VARIABLE, _SLIS),
        rows=(
            Row("Are objectives met?", (_exhausted(), _objectives(limits))),
            Row("When was budget spent, and does it alert?", _history(limits)),
            Row("How much was measured?", _coverage(limits)),
        ),
        annotations=FLOW_ANNOTATIONS,
        time_from="now-28d",
        refresh="5m",
        max_data_points=FLEET_DATA_POINTS,
    )


def _exhausted() -> Panel:
    remaining = min_by(recorded_series(BUDGET_REMAINING, _MATCH_SLI), *_KEYS)
    return Panel(
        title="Exhausted error budgets",
        description="How many error budgets are exhausted? Objectives without remaining budget. "
        "Good is none.",
        kind=Kind.STAT,
        unit=PanelUnit.COUNT,
        no_data=NO_BUDGET_DATA,
        queries={"": sum_by(Vector(f"({remaining} <= bool 0)", remaining.labels))},
        thresholds=BAD_FROM_ONE,
        decimals=0,
        next_dashboard=DashboardUid.FLOW,
        alert="MM2ErrorBudgetExhausted",
        width=4,
        height=10,
    )


def _objectives(limits: ObjectiveLimits) -> Panel:
    error = max_by(recorded_series(ERROR[WINDOW], _MATCH_SLI), *_KEYS)
    return Panel(
        title="Objectives",
        description="Which objectives are met? One row per objective, the smallest remaining "
        "budget first; a flow's name links to its dashboard.",
        kind=Kind.TABLE,
        unit=PanelUnit.SHARE,
        no_data=NO_BUDGET_DATA,
        keys={"flow": "Flow", "sli": "SLI", "tier": "Tier"},
        columns=(
            TableColumn(
                "Objective",
                by_objective("max", OBJECTIVE, *_KEYS, matchers=(_MATCH_SLI,)),
                decimals=3,
            ),
            TableColumn(
                "Good events", readable_sli(Vector(f"1 - {error}", error.labels)), decimals=3
            ),
            TableColumn(
                "Window",
                by_objective("max", OBJECTIVE_WINDOW, *_KEYS, matchers=(_MATCH_SLI,)),
                PanelUnit.SECONDS,
            ),
            budget_column(limits, *_KEYS, matchers=(_MATCH_SLI,)),
            burn_column(limits, *_KEYS, matchers=(_MATCH_SLI,)),
            TableColumn(
                "Coverage",
                by_objective("min", COVERAGE[WINDOW], *_KEYS, matchers=(_MATCH_SLI,)),
                thresholds=good_from(limits.coverage),
                decimals=1,
            ),
        ),
        sort=("Remaining budget",),
        next_dashboard=DashboardUid.FLOW,
        alert="MM2ErrorBudgetExhausted",
        width=20,
        height=10,
    )


def _history(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    remaining = bottomk(10, by_objective("min", BUDGET_REMAINING, *_KEYS, matchers=(_MATCH_SLI,)))
    bad = readable_sli(max_by(sum_over_steps(BAD_STEP, _MATCH_SLI), *_KEYS))
    return (
        Panel(
            title="Error budget burn-down",
            description="When was each budget spent? Remaining share of the error budget, the "
            "ten smallest. It falls with bad events and rises when old ones leave the window.",
            kind=Kind.SERIES,
            unit=PanelUnit.SHARE,
            no_data=NO_BUDGET_DATA,
            queries={_NAMED: Vector(f"clamp_min({remaining}, {LEAST_BUDGET})", remaining.labels)},
            thresholds=budget_thresholds(limits),
            below=OVERSPENT,
            minimum=LEAST_BUDGET,
            maximum=1.0,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2ErrorBudgetExhausted",
            width=8,
        ),
        Panel(
            title="Bad events",
            description="When did events go bad? Bad events from one point to the next, the ten "
            "objectives with most. A short outage is visible in any time range.",
            kind=Kind.SERIES,
            unit=PanelUnit.COUNT,
            no_data=_NO_STEP,
            queries={_NAMED: topk(10, bad)},
            min_interval=_STEP,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2ErrorBudgetBurn",
            width=8,
        ),
        Panel(
            title="Burn rate by window pair",
            description="Is budget burning fast enough to alert? For each window pair the lower "
            "of its two burn rates as a share of the rate that alerts, of the objective that is "
            "closest to alerting. At 100 % the pair alerts, unless few events are bad, or the flow "
            "was stopped or unreachable, which alerts by itself.",
            kind=Kind.SERIES,
            unit=PanelUnit.SHARE,
            no_data=_NO_STEP,
            queries={pair.name: _pair_burn(pair) for pair in WINDOW_PAIRS},
            colours=dict(zip((pair.name for pair in WINDOW_PAIRS), LINES, strict=False)),
            thresholds=bad_from(1.0),
            time_from="6h",
            min_interval=_STEP,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2ErrorBudgetBurn",
            width=8,
        ),
    )


def _pair_burn(pair: WindowPair) -> Vector:
    names = {seconds: name for name, seconds in WINDOW_SECONDS.items()}
    long, short = (
        max_by(recorded_series(BURN[names[each]], _MATCH_SLI), *_KEYS)
        for each in (pair.long, pair.short)
    )
    lower = Vector(f"({long} <= {short} or {short} < {long})", long.labels)
    window = max_by(recorded_series(OBJECTIVE_WINDOW, _MATCH_SLI), *_KEYS)
    return max_by(Vector(f"{lower} / ({pair.factor_query(window)})", long.labels))


def _coverage(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    return (
        Panel(
            title="Coverage",
            description="How much was measured? Coverage over one hour, the ten smallest. A gap "
            "is a time without recorded steps.",
            kind=Kind.SERIES,
            unit=PanelUnit.SHARE,
            no_data=NO_BUDGET_DATA,
            queries={
                _NAMED: bottomk(
                    10, by_objective("min", COVERAGE["1h"], *_KEYS, matchers=(_MATCH_SLI,))
                )
            },
            thresholds=good_from(limits.coverage),
            minimum=None,
            maximum=1.0,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2SLOCoverageLow",
        ),
        Panel(
            title="Events by outcome",
            description="How many events are counted, unknown, or excluded by planned "
            "maintenance? Events from one point to the next; excluded ones spend no budget.",
            kind=Kind.SERIES,
            unit=PanelUnit.COUNT,
            no_data=_NO_STEP,
            queries={
                legend: _all_events(series)
                for series, legend in (
                    (EVENTS_STEP, "settled"),
                    (UNKNOWN_STEP, "unknown"),
                    (EXCLUDED_STEP, "excluded"),
                )
            },
            colours={"settled": Colour.GOOD, "unknown": Colour.UNKNOWN, "excluded": Colour.PLANNED},
            min_interval=_STEP,
            next_dashboard=DashboardUid.PIPELINE,
        ),
    )


def _all_events(series: RecordedSeries) -> Vector:
    return sum_by(sum_over_steps(series, _MATCH_SLI))
