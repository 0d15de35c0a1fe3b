"""SLO dashboard: objectives, remaining budgets, burn rates and coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue.recorded_series import (
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
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.objectives.objective import Severity
from mm2slo_core.objectives.window_pairs import WINDOW_PAIRS, WindowPair
from mm2slo_core.promql import Vector, select
from mm2slo_dashboards.boards.shared_definitions import (
    FLEET_DATA_POINTS,
    FLOW_ANNOTATIONS,
    NO_BUDGET_DATA,
    budget_column,
    budget_thresholds,
    burn_rate_thresholds,
)
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import (
    Column,
    Dashboard,
    Kind,
    Panel,
    Query,
    Row,
    Thresholds,
    Unit,
    Variable,
)
from mm2slo_dashboards.panel_queries import (
    FLOWS_VARIABLE,
    MATCH_FLOW,
    bottomk,
    match_variable,
    max_by,
    min_by,
    recorded_series,
    sum_by,
    topk,
)
from mm2slo_dashboards.state_mappings import NEUTRAL, good_from

if TYPE_CHECKING:
    from mm2slo_dashboards.objective_limits import Limits

_SLIS: Final = Variable(name="sli", title="SLI", label="sli", series=select(OBJECTIVE, MATCH_FLOW))
_MATCH_SLI: Final = match_variable("sli")
_KEYS: Final = ("flow", "sli", "tier")
_NAMED: Final = "{{flow}} {{sli}} {{tier}}"
_TIME_RANGES: Final = {"fast": "1d", "steady": "3d"}
"""Time ranges of window pairs that are shorter than the interval between the dashboard's points."""
_NO_STEP: Final = "No event settled in this time range, or the recording rules are not loaded."


def build(limits: Limits) -> Dashboard:
    """The objectives, the smallest remaining budget first."""
    return Dashboard(
        uid=DashboardUid.SLO,
        title="MirrorMaker 2 / SLO",
        description="Which objectives are met, how much error budget is left, and what spends it?",
        variables=(FLOWS_VARIABLE, _SLIS),
        rows=(
            Row("Are objectives met?", (*_summary(limits), _objectives(limits))),
            Row("When was budget spent?", _budget_history(limits)),
            Row(
                "Is budget burning fast enough to alert?",
                tuple(_burn_rates(limits, pair) for pair in WINDOW_PAIRS),
            ),
            Row("How much was measured?", _coverage(limits)),
        ),
        annotations=FLOW_ANNOTATIONS,
        time_from="now-28d",
        refresh="5m",
        max_data_points=FLEET_DATA_POINTS,
    )


def _summary(limits: Limits) -> tuple[Panel, ...]:
    remaining = min_by(recorded_series(BUDGET_REMAINING, _MATCH_SLI), *_KEYS)
    return (
        Panel(
            title="Lowest remaining error budget",
            description="Which error budget is closest to exhausted? The smallest remaining "
            "share; below 0 it is overspent.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=NO_BUDGET_DATA,
            queries=(Query(vector=min_by(remaining), instant=True),),
            thresholds=budget_thresholds(limits),
            decimals=1,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2ErrorBudgetExhausted",
            width=8,
            height=5,
        ),
        Panel(
            title="Exhausted error budgets",
            description="How many error budgets are exhausted? Objectives without remaining "
            "budget. Good is none.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_BUDGET_DATA,
            queries=(
                Query(
                    vector=sum_by(Vector(f"({remaining} <= bool 0)", remaining.labels)),
                    instant=True,
                ),
            ),
            thresholds=Thresholds(Colour.GOOD, ((1.0, Colour.BAD),)),
            decimals=0,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2ErrorBudgetExhausted",
            width=8,
            height=5,
        ),
        Panel(
            title="Lowest coverage",
            description="How much of the last hour was measured? The smallest coverage: the "
            "known share of events times the recorded share of due steps. Below "
            f"{limits.coverage:.0%} values are not reliable.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=NO_BUDGET_DATA,
            queries=(
                Query(vector=min_by(recorded_series(COVERAGE["1h"], _MATCH_SLI)), instant=True),
            ),
            thresholds=good_from(limits.coverage),
            decimals=1,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2SLOCoverageLow",
            width=8,
            height=5,
        ),
    )


def _objectives(limits: Limits) -> Panel:
    error = max_by(recorded_series(ERROR[WINDOW], _MATCH_SLI), *_KEYS)
    return Panel(
        title="Objectives",
        description="Which objectives are met? One row per objective, the smallest remaining "
        "budget first; a flow's name links to its dashboard.",
        kind=Kind.TABLE,
        unit=Unit.SHARE,
        no_data=NO_BUDGET_DATA,
        keys={"flow": "Flow", "sli": "SLI", "tier": "Tier"},
        columns=(
            Column(
                title="Objective",
                vector=max_by(recorded_series(OBJECTIVE, _MATCH_SLI), *_KEYS),
                unit=Unit.SHARE,
                decimals=3,
            ),
            Column(
                title="Good events",
                vector=Vector(f"1 - {error}", error.labels),
                unit=Unit.SHARE,
                decimals=3,
            ),
            Column(
                title="Window",
                vector=max_by(recorded_series(OBJECTIVE_WINDOW, _MATCH_SLI), *_KEYS),
                unit=Unit.SECONDS,
            ),
            budget_column(limits, *_KEYS, matchers=(_MATCH_SLI,)),
            Column(
                title="Burn rate (1h)",
                vector=max_by(recorded_series(BURN["1h"], _MATCH_SLI), *_KEYS),
                unit=Unit.FACTOR,
                thresholds=burn_rate_thresholds(limits),
                decimals=2,
            ),
            Column(
                title="Coverage",
                vector=min_by(recorded_series(COVERAGE[WINDOW], _MATCH_SLI), *_KEYS),
                unit=Unit.SHARE,
                thresholds=good_from(limits.coverage),
                decimals=1,
            ),
        ),
        sort=("Remaining budget",),
        next_dashboard=DashboardUid.FLOW,
        alert="MM2ErrorBudgetExhausted",
        width=24,
        height=10,
    )


def _budget_history(limits: Limits) -> tuple[Panel, ...]:
    return (
        Panel(
            title="Error budget burn-down",
            description="When was each budget spent? Remaining share of the error budget, the "
            "ten smallest. It falls with bad events and rises when old ones leave the window.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=NO_BUDGET_DATA,
            queries=(
                Query(
                    vector=bottomk(
                        10, min_by(recorded_series(BUDGET_REMAINING, _MATCH_SLI), *_KEYS)
                    ),
                    legend=_NAMED,
                ),
            ),
            thresholds=budget_thresholds(limits),
            maximum=1.0,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2ErrorBudgetExhausted",
        ),
        Panel(
            title="Bad events",
            description="When did events go bad? Bad events of each five-minute step, the ten "
            "SLIs with most.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=_NO_STEP,
            queries=(
                Query(
                    vector=topk(10, max_by(recorded_series(BAD_STEP, _MATCH_SLI), *_KEYS)),
                    legend=_NAMED,
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLOW,
            alert="MM2ErrorBudgetBurn",
        ),
    )


def _burn_rates(limits: Limits, pair: WindowPair) -> Panel:
    names = {seconds: name for name, seconds in WINDOW_SECONDS.items()}
    windows = (names[pair.long], names[pair.short])
    factor = limits.alert_burn_rate(pair)
    severity = "pages" if pair.severity is Severity.PAGE else "opens a ticket"
    return Panel(
        title=f"Burn rate of the {pair.name} window pair",
        time_from=_TIME_RANGES.get(pair.name, ""),
        description=f"Does the {pair.name} pair alert? Burn rates over {windows[0]} and "
        f"{windows[1]}, the five highest of each. It {severity} while both are above {factor:.3g}, "
        f"which spends {pair.share:.0%} of the budget in {windows[0]}.",
        kind=Kind.SERIES,
        unit=Unit.FACTOR,
        no_data=_NO_STEP,
        queries=tuple(
            Query(
                vector=topk(5, max_by(recorded_series(BURN[window], _MATCH_SLI), *_KEYS)),
                legend=f"{window} {_NAMED}",
            )
            for window in windows
        ),
        thresholds=Thresholds(Colour.GOOD, ((factor, Colour.BAD),)),
        minimum=0.0,
        next_dashboard=DashboardUid.FLOW,
        alert="MM2ErrorBudgetBurn",
    )


def _coverage(limits: Limits) -> tuple[Panel, ...]:
    return (
        Panel(
            title="Coverage",
            description="How much was measured? Coverage over one hour, the ten smallest. A gap "
            "is a time without recorded steps.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=NO_BUDGET_DATA,
            queries=(
                Query(
                    vector=bottomk(10, min_by(recorded_series(COVERAGE["1h"], _MATCH_SLI), *_KEYS)),
                    legend=_NAMED,
                ),
            ),
            thresholds=good_from(limits.coverage),
            maximum=1.0,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2SLOCoverageLow",
            width=8,
        ),
        Panel(
            title="Settled and unknown events",
            description="How many events are counted, and how many are unknown? Events of each "
            "five-minute step.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=_NO_STEP,
            queries=(
                Query(vector=sum_by(recorded_series(EVENTS_STEP, _MATCH_SLI)), legend="settled"),
                Query(vector=sum_by(recorded_series(UNKNOWN_STEP, _MATCH_SLI)), legend="unknown"),
            ),
            colours={"settled": Colour.GOOD, "unknown": Colour.UNKNOWN},
            thresholds=NEUTRAL,
            minimum=0.0,
            next_dashboard=DashboardUid.PIPELINE,
            width=8,
        ),
        Panel(
            title="Excluded events",
            description="How much does planned maintenance exclude? Settled events of each step "
            "that spend no budget.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data="No planned maintenance in this time range.",
            queries=(
                Query(
                    vector=sum_by(recorded_series(EXCLUDED_STEP, _MATCH_SLI), "flow"),
                    legend="{{flow}}",
                ),
            ),
            thresholds=Thresholds(Colour.PLANNED),
            minimum=0.0,
            next_dashboard=DashboardUid.FLOW,
            fills_on="planned maintenance",
            width=8,
        ),
    )
