"""Panels of a flow's first row: state, lag, heartbeat age, budget and burn rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.catalogue import FLOW_LAG_SECONDS, HEARTBEAT_AGE_SECONDS
from mm2slo_core.catalogue.recorded_series import BUDGET_REMAINING, BURN
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_dashboards.boards.shared_definitions import (
    FLOW_STATE_CODE,
    NO_BUDGET_DATA,
    NO_EXPORTER_DATA,
    budget_thresholds,
    burn_rate_thresholds,
)
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import flow_series, max_by, min_by, recorded_series
from mm2slo_dashboards.state_mappings import FLOW_STATES, bad_from

if TYPE_CHECKING:
    from mm2slo_dashboards.objective_limits import Limits


def panels(limits: Limits) -> tuple[Panel, ...]:
    """State, lag, heartbeat age, budget and burn rate; then the state over time."""
    return (
        Panel(
            title="Flow state",
            description="What state is the flow in? Running: records or canaries arrive. Idle: "
            "nothing to replicate. Stopped: records or canaries are pending and none arrive. "
            "Unknown: the state cannot be determined.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=FLOW_STATE_CODE,
                    legend="{{flow}}",
                    instant=True,
                ),
            ),
            states=FLOW_STATES,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2FlowStopped",
            width=5,
            height=5,
        ),
        Panel(
            title="Lag",
            description="How far behind is the flow? Age of the oldest unreplicated record, 0 "
            "without one. It grows while the flow is stopped. The freshness threshold is "
            f"{limits.lag:g} s.",
            kind=Kind.STAT,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries=(Query(vector=max_by(flow_series(FLOW_LAG_SECONDS), "flow"), instant=True),),
            thresholds=bad_from(limits.lag),
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
            width=5,
            height=5,
        ),
        Panel(
            title="Heartbeat age",
            description="Is MirrorMaker 2 alive? Age of its latest heartbeat on the target, "
            f"usually one or two seconds. Above {limits.canary_deadline:g} s it is not.",
            kind=Kind.STAT,
            unit=Unit.SECONDS,
            no_data="No heartbeat on the target: they are off, or their topic is not replicated.",
            queries=(
                Query(vector=min_by(flow_series(HEARTBEAT_AGE_SECONDS), "flow"), instant=True),
            ),
            thresholds=bad_from(limits.canary_deadline),
            next_dashboard=DashboardUid.FLEET,
            alert="MM2FlowStopped",
            width=4,
            height=5,
        ),
        Panel(
            title="Lowest remaining error budget",
            description="How much error budget is left? The smallest remaining share over the "
            "flow's objectives; below 0 it is overspent.",
            kind=Kind.STAT,
            unit=Unit.SHARE,
            no_data=NO_BUDGET_DATA,
            queries=(
                Query(vector=min_by(recorded_series(BUDGET_REMAINING), "flow"), instant=True),
            ),
            thresholds=budget_thresholds(limits),
            decimals=1,
            next_dashboard=DashboardUid.SLO,
            alert="MM2ErrorBudgetExhausted",
            width=5,
            height=5,
        ),
        Panel(
            title="Highest burn rate",
            description="How fast is budget spent? The highest burn rate over one hour. Above 1 "
            f"the budget is exhausted before the window ends; at {limits.page_burn_rate:.3g} it "
            "pages.",
            kind=Kind.STAT,
            unit=Unit.FACTOR,
            no_data=NO_BUDGET_DATA,
            queries=(Query(vector=max_by(recorded_series(BURN["1h"]), "flow"), instant=True),),
            thresholds=burn_rate_thresholds(limits),
            decimals=2,
            next_dashboard=DashboardUid.SLO,
            alert="MM2ErrorBudgetBurn",
            width=5,
            height=5,
        ),
        Panel(
            title="Flow state history",
            description="Since when is the flow in this state? Gaps: nothing was scraped.",
            kind=Kind.TIMELINE,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=FLOW_STATE_CODE,
                    legend="{{flow}}",
                ),
            ),
            states=FLOW_STATES,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2FlowStopped",
            width=24,
            height=4,
        ),
    )
