"""The first row of a flow: its state, and the figures that decide whether to read on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue import FLOW_LAG_SECONDS, HEARTBEAT_AGE_SECONDS
from mm2slo_core.catalogue.recorded import BUDGET_REMAINING, BURN
from mm2slo_dashboards.boards.common import (
    NO_EXPORTER,
    NO_RULES,
    STATE_OF_FLOW,
    budget_steps,
    burn_steps,
)
from mm2slo_dashboards.model import Kind, Panel, Query, Unit
from mm2slo_dashboards.selecting import least, of_flow, recorded, worst
from mm2slo_dashboards.states import FLOW_STATES, up_to

if TYPE_CHECKING:
    from mm2slo_dashboards.limits import Limits


def panels(limits: Limits) -> tuple[Panel, ...]:
    """State, lag, liveness, budget and burn; then the state over time."""
    return (
        Panel(
            title="In which state is it?",
            description="Running: records or canaries arrive. Idle: nothing to copy. Stopped: "
            "something waits and nothing arrives. Unknown: nobody can tell.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=STATE_OF_FLOW,
                    legend="{{flow}}",
                    instant=True,
                ),
            ),
            states=FLOW_STATES,
            leads=Identity.FLEET,
            alert="MM2FlowStopped",
            width=5,
            height=5,
        ),
        Panel(
            title="How far behind is it?",
            description="Age of the oldest record that waits; 0 when none does. It grows while "
            f"the flow stands still. The objective is {limits.fresh:g} s.",
            kind=Kind.STAT,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER,
            queries=(Query(vector=worst(of_flow(FLOW_LAG_SECONDS), "flow"), instant=True),),
            steps=up_to(limits.fresh),
            leads=Identity.FLEET,
            alert="MM2PartitionStalled",
            width=5,
            height=5,
        ),
        Panel(
            title="How old is the newest heartbeat?",
            description="Age of the newest heartbeat of MirrorMaker 2 on the target. A second or "
            f"two is usual; above {limits.deadline:g} s nothing is alive.",
            kind=Kind.STAT,
            unit=Unit.SECONDS,
            no_data="No heartbeat is found on the target: they are off, or their topic is not "
            "copied.",
            queries=(Query(vector=least(of_flow(HEARTBEAT_AGE_SECONDS), "flow"), instant=True),),
            steps=up_to(limits.deadline),
            leads=Identity.FLEET,
            alert="MM2FlowStopped",
            width=4,
            height=5,
        ),
        Panel(
            title="How much budget is left?",
            description="The smallest share that is left of its error budgets. Below 0 more was "
            "spent than promised.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=NO_RULES,
            queries=(Query(vector=least(recorded(BUDGET_REMAINING), "flow"), instant=True),),
            steps=budget_steps(limits),
            decimals=1,
            leads=Identity.SLO,
            alert="MM2ErrorBudgetExhausted",
            width=5,
            height=5,
        ),
        Panel(
            title="How fast does it burn?",
            description="The fastest burn rate of the last hour. Above 1 the budget does not last "
            f"for its window; at {limits.hot:.3g} it pages.",
            kind=Kind.STAT,
            unit=Unit.FACTOR,
            no_data=NO_RULES,
            queries=(Query(vector=worst(recorded(BURN["1h"]), "flow"), instant=True),),
            steps=burn_steps(limits),
            decimals=2,
            leads=Identity.SLO,
            alert="MM2ErrorBudgetBurnFast",
            width=5,
            height=5,
        ),
        Panel(
            title="Since when?",
            description="Its state over time. Gaps: nothing was scraped.",
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
            leads=Identity.FLEET,
            alert="MM2FlowStopped",
            width=24,
            height=4,
        ),
    )
