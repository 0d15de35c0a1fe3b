"""Fleet: whether anything is wrong, where, since when, and what to look at next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue import FLOW_LAG_RECORDS, FLOW_LAG_SECONDS, FLOW_STATE
from mm2slo_core.catalogue.failover import FAILOVER_READY
from mm2slo_core.catalogue.recorded import BUDGET_REMAINING, BURN
from mm2slo_core.promql import aggregate
from mm2slo_dashboards.boards.common import (
    ALERT_MARKS,
    EXCLUSION_MARKS,
    NO_EXPORTER,
    NO_RULES,
    OF_ALL_FLOWS,
    STATE_OF_FLOW,
    budget_column,
    budget_steps,
    burn_column,
    burn_steps,
)
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Board, Column, Kind, Panel, Query, Row, Unit
from mm2slo_dashboards.selecting import (
    FLOWS,
    IN_FLOW,
    bottom,
    firing,
    least,
    of_flow,
    recorded,
    top,
    total,
    where,
    worst,
)
from mm2slo_dashboards.states import FLOW_STATES, NONE_IS_BEST, NONE_IS_GOOD, colours, up_to

if TYPE_CHECKING:
    from mm2slo_dashboards.limits import Limits


def board(limits: Limits) -> Board:
    """All flows, worst first."""
    return Board(
        identity=Identity.FLEET,
        title="MirrorMaker 2 / Fleet",
        description="All flows: is anything wrong, where, since when, and what next?",
        variables=(FLOWS,),
        rows=(
            Row("Is anything wrong?", _wrong(limits)),
            Row("Where, and what next?", (_flows(limits), _alerts())),
            Row("Since when?", _since(limits)),
        ),
        marks=(ALERT_MARKS, EXCLUSION_MARKS),
        points=OF_ALL_FLOWS,
    )


def _wrong(limits: Limits) -> tuple[Panel, ...]:
    states = total(worst(of_flow(FLOW_STATE), "flow", "state"), "state")
    return (
        Panel(
            title="How many flows run?",
            description="Flows by state. Stopped: records or canaries wait, both clusters answer, "
            "and nothing arrives. Unknown: nobody can tell. Neither should be there.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(Query(vector=states, legend="{{state}}", instant=True),),
            colours=colours(FLOW_STATES),
            leads=Identity.FLOW,
            alert="MM2FlowStopped",
            height=5,
        ),
        Panel(
            title="Does any alert fire?",
            description="Alerts that people are told of, by severity. A page wakes somebody, a "
            "ticket waits for the working day. Good is none.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data="No alert fires.",
            queries=(
                Query(vector=total(firing(), "severity"), legend="{{severity}}", instant=True),
            ),
            colours={"page": Colour.BAD, "ticket": Colour.WARNING},
            leads=Identity.FLOW,
            fills="a stopped MirrorMaker 2",
            width=4,
            height=5,
        ),
        Panel(
            title="Which budget is nearest to its end?",
            description="The smallest share of an error budget that is left, over all flows and "
            "indicators. Below 0 more was spent than promised.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=NO_RULES,
            queries=(Query(vector=least(recorded(BUDGET_REMAINING)), instant=True),),
            steps=budget_steps(limits),
            decimals=1,
            leads=Identity.SLO,
            alert="MM2ErrorBudgetExhausted",
            width=4,
            height=5,
        ),
        Panel(
            title="How far behind is the worst flow?",
            description="Age of the oldest record that waits, of the flow that is furthest "
            f"behind. The strictest objective for data is {limits.fresh:g} s.",
            kind=Kind.STAT,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER,
            queries=(Query(vector=worst(of_flow(FLOW_LAG_SECONDS)), instant=True),),
            steps=up_to(limits.fresh),
            leads=Identity.FLOW,
            alert="MM2PartitionStalled",
            width=4,
            height=5,
        ),
    )


def _flows(limits: Limits) -> Panel:
    unready = where(least(of_flow(FAILOVER_READY), "flow", "group"), "== 0")
    return Panel(
        title="Which flows need attention first?",
        description="One row per flow, the gravest state and the smallest budget first; a flow's "
        "name leads to its board. A dash is a figure that nobody publishes.",
        kind=Kind.TABLE,
        unit=Unit.COUNT,
        no_data=NO_EXPORTER,
        keys={"flow": "Flow"},
        columns=(
            Column(
                title="State",
                vector=STATE_OF_FLOW,
                unit=Unit.COUNT,
                states=FLOW_STATES,
            ),
            budget_column(limits, "flow"),
            burn_column(limits, "flow"),
            Column(
                title="Lag",
                vector=worst(of_flow(FLOW_LAG_SECONDS), "flow"),
                unit=Unit.SECONDS,
                steps=up_to(limits.fresh),
            ),
            Column(
                title="Records behind",
                vector=worst(of_flow(FLOW_LAG_RECORDS), "flow"),
                unit=Unit.COUNT,
            ),
            Column(
                title="Alerts",
                vector=total(firing(IN_FLOW), "flow"),
                unit=Unit.COUNT,
                steps=NONE_IS_GOOD,
            ),
            Column(
                title="Groups not ready",
                vector=aggregate("count", unready, ("flow",)),
                unit=Unit.COUNT,
                steps=NONE_IS_BEST,
            ),
        ),
        sort=("-State", "Budget left"),
        leads=Identity.FLOW,
        width=16,
        height=11,
    )


def _alerts() -> Panel:
    labels = ("severity", "alertname", "flow", "cluster", "topic", "group")
    return Panel(
        title="Which alerts fire, and who says what to do?",
        description="Alerts that people are told of; an alert's name leads to its runbook, where "
        "the address of the runbooks is configured. Good is an empty table.",
        kind=Kind.TABLE,
        unit=Unit.COUNT,
        no_data="No alert fires.",
        keys={
            "severity": "Severity",
            "alertname": "Alert",
            "flow": "Flow",
            "cluster": "Cluster",
            "topic": "Topic",
            "group": "Group",
        },
        columns=(Column(title="Firing", vector=total(firing(), *labels), unit=Unit.COUNT),),
        sort=("Severity",),
        leads=Identity.FLOW,
        fills="a stopped MirrorMaker 2",
        width=8,
        height=11,
    )


def _since(limits: Limits) -> tuple[Panel, ...]:
    return (
        Panel(
            title="Since when does each flow run, and when did it not?",
            description="The state of each flow over time. Gaps: nothing was scraped.",
            kind=Kind.TIMELINE,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=STATE_OF_FLOW,
                    legend="{{flow}}",
                ),
            ),
            states=FLOW_STATES,
            leads=Identity.FLOW,
            width=24,
            height=10,
        ),
        Panel(
            title="Whose budget burns fastest?",
            description="Burn rate of the last hour, the ten fastest flows. Above 1 the budget "
            f"does not last for its window; at {limits.hot:.3g} it pages.",
            kind=Kind.SERIES,
            unit=Unit.FACTOR,
            no_data=NO_RULES,
            queries=(
                Query(vector=top(10, worst(recorded(BURN["1h"]), "flow")), legend="{{flow}}"),
            ),
            steps=burn_steps(limits),
            least=0.0,
            leads=Identity.SLO,
            alert="MM2ErrorBudgetBurnFast",
            width=8,
        ),
        Panel(
            title="Which flows are furthest behind?",
            description="Age of the oldest record that waits, the ten flows that are furthest "
            f"behind. The strictest objective for data is {limits.fresh:g} s.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER,
            queries=(
                Query(vector=top(10, worst(of_flow(FLOW_LAG_SECONDS), "flow")), legend="{{flow}}"),
            ),
            steps=up_to(limits.fresh),
            least=0.0,
            leads=Identity.FLOW,
            alert="MM2PartitionStalled",
            width=8,
        ),
        Panel(
            title="Whose budget is smallest?",
            description="Share of the error budget that is left, the ten smallest over all flows "
            "and indicators. Below 0 more was spent than promised.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=NO_RULES,
            queries=(
                Query(
                    vector=bottom(10, least(recorded(BUDGET_REMAINING), "flow", "sli", "tier")),
                    legend="{{flow}} {{sli}} {{tier}}",
                ),
            ),
            steps=budget_steps(limits),
            most=1.0,
            leads=Identity.SLO,
            alert="MM2ErrorBudgetExhausted",
            width=8,
        ),
    )
