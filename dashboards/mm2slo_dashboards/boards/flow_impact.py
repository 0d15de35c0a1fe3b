"""Panels with the state of a flow and its impact on consumers: objectives and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.catalogue import CANARY_LATENCY_SECONDS
from mm2slo_core.catalogue.recorded_series import COVERAGE, OBJECTIVE
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import over
from mm2slo_dashboards.boards.shared_definitions import (
    FLOW_STATE_CODE,
    NO_BUDGET_DATA,
    NO_EXPORTER_DATA,
    budget_column,
    burn_column,
    by_objective,
    latency_thresholds,
)
from mm2slo_dashboards.colours import LINES
from mm2slo_dashboards.dashboard_model import Column, Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import (
    MATCH_FLOW,
    RATE_VARIABLE,
    histogram_quantile,
    sum_by,
)
from mm2slo_dashboards.state_mappings import FLOW_STATES, good_from

if TYPE_CHECKING:
    from mm2slo_dashboards.objective_limits import Limits

_KEYS = ("sli", "tier")
_QUANTILES = {"p50": 0.5, "p99": 0.99}


def panels(limits: Limits) -> tuple[Panel, ...]:
    """State now and over time, objectives, latency of canaries."""
    return (
        Panel(
            title="Flow state",
            description="What state is the flow in? Running: records or canaries arrive. Idle: "
            "nothing to replicate. Stopped: records or canaries are pending and none arrive. "
            "Unknown: the state cannot be determined.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(Query(vector=FLOW_STATE_CODE, legend="{{flow}}", instant=True),),
            states=FLOW_STATES,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2FlowStopped",
            width=5,
            height=5,
        ),
        Panel(
            title="Flow state history",
            description="Since when is the flow in this state? Gaps: nothing was scraped.",
            kind=Kind.TIMELINE,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(Query(vector=FLOW_STATE_CODE, legend="{{flow}}"),),
            states=FLOW_STATES,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2FlowStopped",
            width=19,
            height=5,
        ),
        _objectives(limits),
        _latency(limits),
    )


def _objectives(limits: Limits) -> Panel:
    return Panel(
        title="Objectives",
        description="Which objective is at risk? Each SLI with its objective, remaining budget, "
        "burn rate and coverage over one hour. With low coverage the values are not reliable.",
        kind=Kind.TABLE,
        unit=Unit.SHARE,
        no_data=NO_BUDGET_DATA,
        keys={"sli": "SLI", "tier": "Tier"},
        columns=(
            Column(
                title="Objective",
                vector=by_objective("max", OBJECTIVE, *_KEYS),
                unit=Unit.SHARE,
                decimals=3,
            ),
            budget_column(limits, *_KEYS),
            burn_column(limits, *_KEYS),
            Column(
                title="Coverage (1h)",
                vector=by_objective("min", COVERAGE["1h"], *_KEYS),
                unit=Unit.SHARE,
                thresholds=good_from(limits.coverage),
                decimals=1,
            ),
        ),
        sort=("Remaining budget",),
        next_dashboard=DashboardUid.SLO,
        alert="MM2ErrorBudgetExhausted",
        height=9,
    )


def _latency(limits: Limits) -> Panel:
    rate = over("rate", CANARY_LATENCY_SECONDS, RATE_VARIABLE, MATCH_FLOW, part="bucket")
    buckets = sum_by(rate, "le")
    return Panel(
        title="Canary latency p50/p99",
        description="How long do canaries take? Time from sending a canary on the source to its "
        "arrival on the target. Lines: the thresholds of the latency objectives.",
        kind=Kind.SERIES,
        unit=Unit.SECONDS,
        no_data="No canary arrived in this time range: the flow is stopped, or its canary is off.",
        queries=tuple(
            Query(vector=histogram_quantile(share, buckets), legend=name)
            for name, share in _QUANTILES.items()
        ),
        thresholds=latency_thresholds(limits),
        colours=dict(zip(_QUANTILES, LINES, strict=False)),
        minimum=0.0,
        next_dashboard=DashboardUid.SLO,
        alert="MM2ErrorBudgetBurn",
        height=9,
    )
