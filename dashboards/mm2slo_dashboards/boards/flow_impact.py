"""Panels with the impact on consumers: objectives and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.catalogue import CANARY_LATENCY_SECONDS, HEARTBEAT_LATENCY_SECONDS, Metric
from mm2slo_core.catalogue.recorded_series import COVERAGE, ERROR, OBJECTIVE
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import Vector, over
from mm2slo_dashboards.boards.shared_definitions import (
    NO_BUDGET_DATA,
    budget_column,
    burn_column,
    latency_thresholds,
)
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import Column, Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import (
    MATCH_FLOW,
    RATE_VARIABLE,
    histogram_quantile,
    max_by,
    min_by,
    recorded_series,
    sum_by,
)
from mm2slo_dashboards.state_mappings import good_from

if TYPE_CHECKING:
    from mm2slo_dashboards.objective_limits import Limits

_KEYS = ("sli", "tier")
_NO_CANARY = "No canary arrived in this time range: the flow is stopped, or its canary is off."
_NO_HEARTBEAT = "No heartbeat arrived in this time range: the flow is stopped, or they are off."
_QUANTILES = (0.5, 0.99)


def panels(limits: Limits) -> tuple[Panel, ...]:
    """Objectives and SLIs, then latency of canaries and heartbeats."""
    return (
        _objectives(limits),
        _good_events(),
        _latency_percentiles(
            CANARY_LATENCY_SECONDS,
            "Canary latency p50/p99",
            "How long do canaries take? Time from sending a canary on the source to its arrival on "
            "the target. Lines: the thresholds of the latency objectives.",
            _NO_CANARY,
            limits,
        ),
        _latency_distribution(
            CANARY_LATENCY_SECONDS,
            "Canary latency distribution",
            "How is canary latency distributed? Canaries by latency. A second band is a second "
            "group of latencies, as after a rebalance.",
            _NO_CANARY,
        ),
        _latency_percentiles(
            HEARTBEAT_LATENCY_SECONDS,
            "Heartbeat latency p50/p99",
            "How long do heartbeats take? Time from MirrorMaker 2's sending of a heartbeat to its "
            "arrival on the target.",
            _NO_HEARTBEAT,
            limits,
        ),
        _latency_distribution(
            HEARTBEAT_LATENCY_SECONDS,
            "Heartbeat latency distribution",
            "How is heartbeat latency distributed? Heartbeats by latency.",
            _NO_HEARTBEAT,
        ),
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
                vector=max_by(recorded_series(OBJECTIVE), *_KEYS),
                unit=Unit.SHARE,
                decimals=3,
            ),
            budget_column(limits, *_KEYS),
            burn_column(limits, *_KEYS),
            Column(
                title="Coverage (1h)",
                vector=min_by(recorded_series(COVERAGE["1h"]), *_KEYS),
                unit=Unit.SHARE,
                thresholds=good_from(limits.coverage),
                decimals=1,
            ),
        ),
        sort=("Remaining budget",),
        next_dashboard=DashboardUid.SLO,
        alert="MM2ErrorBudgetExhausted",
        width=12,
        height=9,
    )


def _good_events() -> Panel:
    error = max_by(recorded_series(ERROR["5m"]), *_KEYS)
    return Panel(
        title="Share of good events",
        description="What share of events is good? Good of all settled events over five "
        "minutes, by SLI. Unknown events are not counted.",
        kind=Kind.SERIES,
        unit=Unit.SHARE,
        no_data="No event settled in this time range, or the recording rules are not loaded.",
        queries=(Query(vector=Vector(f"1 - {error}", error.labels), legend="{{sli}} {{tier}}"),),
        maximum=1.0,
        next_dashboard=DashboardUid.SLO,
        alert="MM2ErrorBudgetBurn",
        height=9,
    )


def _latency_percentiles(
    metric: Metric, title: str, description: str, no_data: str, limits: Limits
) -> Panel:
    buckets = sum_by(over("rate", metric, RATE_VARIABLE, MATCH_FLOW, part="bucket"), "le")
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=Unit.SECONDS,
        no_data=no_data,
        queries=tuple(
            Query(vector=histogram_quantile(share, buckets), legend=f"p{share * 100:g}")
            for share in _QUANTILES
        ),
        thresholds=latency_thresholds(limits),
        colours={"p50": Colour.RESTING, "p99": Colour.NEUTRAL},
        minimum=0.0,
        next_dashboard=DashboardUid.SLO,
        alert="MM2ErrorBudgetBurn",
    )


def _latency_distribution(metric: Metric, title: str, description: str, no_data: str) -> Panel:
    increase = sum_by(over("increase", metric, RATE_VARIABLE, MATCH_FLOW, part="bucket"), "le")
    return Panel(
        title=title,
        description=description,
        kind=Kind.HEATMAP,
        unit=Unit.SECONDS,
        no_data=no_data,
        queries=(Query(vector=increase, legend="{{le}}"),),
        next_dashboard=DashboardUid.SLO,
    )
