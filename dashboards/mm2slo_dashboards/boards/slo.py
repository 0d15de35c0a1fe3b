"""SLO: what is promised, how much budget is left, what spends it, and how much is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.recorded import (
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
from mm2slo_core.objectives.objective import Severity
from mm2slo_core.objectives.pairs import BURN_PAIRS, BurnPair
from mm2slo_core.promql import Vector, select
from mm2slo_dashboards.boards.common import (
    FLOW_MARKS,
    NO_RULES,
    OF_ALL_FLOWS,
    budget_column,
    budget_steps,
    burn_steps,
)
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import (
    Board,
    Column,
    Kind,
    Panel,
    Query,
    Row,
    Steps,
    Unit,
    Variable,
)
from mm2slo_dashboards.selecting import (
    FLOWS,
    IN_FLOW,
    bottom,
    chosen,
    least,
    recorded,
    top,
    total,
    worst,
)
from mm2slo_dashboards.states import NEUTRAL, at_least

if TYPE_CHECKING:
    from mm2slo_dashboards.limits import Limits

_INDICATORS: Final = Variable(
    name="sli", title="Indicator", label="sli", series=select(OBJECTIVE, IN_FLOW)
)
_CHOSEN: Final = chosen("sli")
_KEYS: Final = ("flow", "sli", "tier")
_NAMED: Final = "{{flow}} {{sli}} {{tier}}"
_SHOWN: Final = {"fast": "1d", "steady": "3d"}
"""Time ranges of pairs whose windows are shorter than the distance of points on the whole board."""
_NO_STEP: Final = "No event settled in this time, or the recording rules are not loaded."


def board(limits: Limits) -> Board:
    """The objectives, the smallest budget first."""
    return Board(
        identity=Identity.SLO,
        title="MirrorMaker 2 / SLO",
        description="What is promised, how much of each error budget is left, and what spends it.",
        variables=(FLOWS, _INDICATORS),
        rows=(
            Row("Do we keep our promises?", (*_standing(limits), _objectives(limits))),
            Row("Since when is budget spent?", _spent(limits)),
            Row(
                "Does it burn fast enough to alert?",
                tuple(_pair(limits, pair) for pair in BURN_PAIRS),
            ),
            Row("How much do we know?", _known(limits)),
        ),
        marks=FLOW_MARKS,
        since="now-28d",
        refresh="5m",
        points=OF_ALL_FLOWS,
    )


def _standing(limits: Limits) -> tuple[Panel, ...]:
    left = least(recorded(BUDGET_REMAINING, _CHOSEN), *_KEYS)
    return (
        Panel(
            title="Which budget is nearest to its end?",
            description="The smallest share of an error budget that is left. Below 0 more was "
            "spent than promised.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=NO_RULES,
            queries=(Query(vector=least(left), instant=True),),
            steps=budget_steps(limits),
            decimals=1,
            leads=Identity.FLOW,
            alert="MM2ErrorBudgetExhausted",
            width=8,
            height=5,
        ),
        Panel(
            title="How many budgets are used up?",
            description="Objectives of which nothing is left of the budget. Good is none.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_RULES,
            queries=(
                Query(vector=total(Vector(f"({left} <= bool 0)", left.labels)), instant=True),
            ),
            steps=Steps(Colour.GOOD, ((1.0, Colour.BAD),)),
            decimals=0,
            leads=Identity.FLOW,
            alert="MM2ErrorBudgetExhausted",
            width=8,
            height=5,
        ),
        Panel(
            title="How much of the last hour is known?",
            description="The smallest coverage: the known share of events times the share of due "
            f"steps that were recorded. Below {limits.coverage:.0%} figures are not worth "
            "relying on.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=NO_RULES,
            queries=(Query(vector=least(recorded(COVERAGE["1h"], _CHOSEN)), instant=True),),
            steps=at_least(limits.coverage),
            decimals=1,
            leads=Identity.PIPELINE,
            alert="MM2SLOCoverageLow",
            width=8,
            height=5,
        ),
    )


def _objectives(limits: Limits) -> Panel:
    error = worst(recorded(ERROR[WINDOW], _CHOSEN), *_KEYS)
    return Panel(
        title="What is promised, and how does it stand?",
        description="One row per objective, the smallest budget first; a flow's name leads to its "
        "board.",
        kind=Kind.TABLE,
        unit=Unit.SHARE,
        no_data=NO_RULES,
        keys={"flow": "Flow", "sli": "Indicator", "tier": "Tier"},
        columns=(
            Column(
                title="Promised",
                vector=worst(recorded(OBJECTIVE, _CHOSEN), *_KEYS),
                unit=Unit.SHARE,
                decimals=3,
            ),
            Column(
                title="Kept",
                vector=Vector(f"1 - {error}", error.labels),
                unit=Unit.SHARE,
                decimals=3,
            ),
            Column(
                title="Window",
                vector=worst(recorded(OBJECTIVE_WINDOW, _CHOSEN), *_KEYS),
                unit=Unit.SECONDS,
            ),
            budget_column(limits, *_KEYS, among=(_CHOSEN,)),
            Column(
                title="Burn rate, 1 h",
                vector=worst(recorded(BURN["1h"], _CHOSEN), *_KEYS),
                unit=Unit.FACTOR,
                steps=burn_steps(limits),
                decimals=2,
            ),
            Column(
                title="Known of the window",
                vector=least(recorded(COVERAGE[WINDOW], _CHOSEN), *_KEYS),
                unit=Unit.SHARE,
                steps=at_least(limits.coverage),
                decimals=1,
            ),
        ),
        sort=("Budget left",),
        leads=Identity.FLOW,
        alert="MM2ErrorBudgetExhausted",
        width=24,
        height=10,
    )


def _spent(limits: Limits) -> tuple[Panel, ...]:
    return (
        Panel(
            title="How did each budget burn down?",
            description="Share of the error budget that is left, the ten smallest. It falls with "
            "bad events, and rises when old ones leave the window.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=NO_RULES,
            queries=(
                Query(
                    vector=bottom(10, least(recorded(BUDGET_REMAINING, _CHOSEN), *_KEYS)),
                    legend=_NAMED,
                ),
            ),
            steps=budget_steps(limits),
            most=1.0,
            leads=Identity.FLOW,
            alert="MM2ErrorBudgetExhausted",
        ),
        Panel(
            title="When did events go bad?",
            description="Bad events of each step of five minutes, the ten indicators with most.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=_NO_STEP,
            queries=(
                Query(vector=top(10, worst(recorded(BAD_STEP, _CHOSEN), *_KEYS)), legend=_NAMED),
            ),
            least=0.0,
            leads=Identity.FLOW,
            alert="MM2ErrorBudgetBurnSlow",
        ),
    )


def _pair(limits: Limits, pair: BurnPair) -> Panel:
    names = {seconds: name for name, seconds in WINDOW_SECONDS.items()}
    windows = (names[pair.long], names[pair.short])
    factor = limits.factor(pair)
    severity = "pages" if pair.severity is Severity.PAGE else "makes a ticket"
    return Panel(
        title=f"Does the {pair.name} pair burn?",
        last=_SHOWN.get(pair.name, ""),
        description=f"Burn rates of {windows[0]} and {windows[1]}, the five fastest of each. It "
        f"{severity} while both are above {factor:.3g}, which spends {pair.share:.0%} of the "
        f"budget in {windows[0]}.",
        kind=Kind.SERIES,
        unit=Unit.FACTOR,
        no_data=_NO_STEP,
        queries=tuple(
            Query(
                vector=top(5, worst(recorded(BURN[window], _CHOSEN), *_KEYS)),
                legend=f"{window} {_NAMED}",
            )
            for window in windows
        ),
        steps=Steps(Colour.GOOD, ((factor, Colour.BAD),)),
        least=0.0,
        leads=Identity.FLOW,
        alert=f"MM2ErrorBudgetBurn{pair.name.capitalize()}",
    )


def _known(limits: Limits) -> tuple[Panel, ...]:
    return (
        Panel(
            title="How much is known?",
            description="Coverage of the last hour, the ten smallest. A gap is a time in which "
            "nothing was recorded.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=NO_RULES,
            queries=(
                Query(
                    vector=bottom(10, least(recorded(COVERAGE["1h"], _CHOSEN), *_KEYS)),
                    legend=_NAMED,
                ),
            ),
            steps=at_least(limits.coverage),
            most=1.0,
            leads=Identity.PIPELINE,
            alert="MM2SLOCoverageLow",
            width=8,
        ),
        Panel(
            title="How many events are counted, and how many are not known?",
            description="Events of each step of five minutes: settled, and those whose fate "
            "cannot be known.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=_NO_STEP,
            queries=(
                Query(vector=total(recorded(EVENTS_STEP, _CHOSEN)), legend="settled"),
                Query(vector=total(recorded(UNKNOWN_STEP, _CHOSEN)), legend="not known"),
            ),
            colours={"settled": Colour.GOOD, "not known": Colour.UNKNOWN},
            steps=NEUTRAL,
            least=0.0,
            leads=Identity.PIPELINE,
            width=8,
        ),
        Panel(
            title="What does planned maintenance take out?",
            description="Settled events of each step that planned maintenance leaves out of the "
            "budgets.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data="There was no planned maintenance in this time.",
            queries=(
                Query(vector=total(recorded(EXCLUDED_STEP, _CHOSEN), "flow"), legend="{{flow}}"),
            ),
            steps=Steps(Colour.PLANNED),
            least=0.0,
            leads=Identity.FLOW,
            fills="planned maintenance",
            width=8,
        ),
    )
