"""What users of a flow feel: its indicators, and how long records take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue import CANARY_LATENCY_SECONDS, HEARTBEAT_LATENCY_SECONDS, Metric
from mm2slo_core.catalogue.recorded import COVERAGE, ERROR, OBJECTIVE
from mm2slo_core.promql import Vector, over
from mm2slo_dashboards.boards.common import NO_RULES, budget_column, burn_column, latency_steps
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.model import Column, Kind, Panel, Query, Unit
from mm2slo_dashboards.selecting import (
    IN_FLOW,
    RATE,
    least,
    quantile,
    recorded,
    total,
    worst,
)
from mm2slo_dashboards.states import at_least

if TYPE_CHECKING:
    from mm2slo_dashboards.limits import Limits

_KEYS = ("sli", "tier")
_NO_CANARY = "No canary arrived in this time: the flow stands still, or its canary is off."
_NO_HEARTBEAT = "No heartbeat arrived in this time: the flow stands still, or they are off."
_SHARES = (0.5, 0.99)


def panels(limits: Limits) -> tuple[Panel, ...]:
    """The indicators, then latency by canary and by heartbeat."""
    return (
        _promises(limits),
        _kept(),
        _percentiles(
            CANARY_LATENCY_SECONDS,
            "How long do canaries take?",
            "Time from sending a canary on the source to its arrival on the target; half of them, "
            "and 99 of 100, are faster. Lines: the thresholds of the latency objectives.",
            _NO_CANARY,
            limits,
        ),
        _heatmap(
            CANARY_LATENCY_SECONDS,
            "How are canaries' times spread?",
            "Canaries by the time they took; a colour stands out where there were many. A second "
            "band is a second way, as after a rebalance.",
            _NO_CANARY,
        ),
        _percentiles(
            HEARTBEAT_LATENCY_SECONDS,
            "How long do heartbeats take?",
            "Time from MirrorMaker 2's sending of a heartbeat to its arrival on the target; half "
            "of them, and 99 of 100, are faster.",
            _NO_HEARTBEAT,
            limits,
        ),
        _heatmap(
            HEARTBEAT_LATENCY_SECONDS,
            "How are heartbeats' times spread?",
            "Heartbeats by the time they took; a colour stands out where there were many.",
            _NO_HEARTBEAT,
        ),
    )


def _promises(limits: Limits) -> Panel:
    return Panel(
        title="Which promise is at risk?",
        description="Each indicator with what is promised, what is left of its budget, how fast "
        "it burns, and how much of the last hour is known. Below the smallest coverage a figure "
        "is not worth relying on.",
        kind=Kind.TABLE,
        unit=Unit.SHARE,
        no_data=NO_RULES,
        keys={"sli": "Indicator", "tier": "Tier"},
        columns=(
            Column(
                title="Promised",
                vector=worst(recorded(OBJECTIVE), *_KEYS),
                unit=Unit.SHARE,
                decimals=3,
            ),
            budget_column(limits, *_KEYS),
            burn_column(limits, *_KEYS),
            Column(
                title="Known, 1 h",
                vector=least(recorded(COVERAGE["1h"]), *_KEYS),
                unit=Unit.SHARE,
                steps=at_least(limits.coverage),
                decimals=1,
            ),
        ),
        sort=("Budget left",),
        leads=Identity.SLO,
        alert="MM2ErrorBudgetExhausted",
        width=12,
        height=9,
    )


def _kept() -> Panel:
    error = worst(recorded(ERROR["5m"]), *_KEYS)
    return Panel(
        title="Which share of events is good?",
        description="Good of all settled events of five minutes, by indicator. What cannot be "
        "known is in neither.",
        kind=Kind.SERIES,
        unit=Unit.SHARE,
        no_data="No event settled in this time, or the recording rules are not loaded.",
        queries=(Query(vector=Vector(f"1 - {error}", error.labels), legend="{{sli}} {{tier}}"),),
        most=1.0,
        leads=Identity.SLO,
        alert="MM2ErrorBudgetBurnFast",
        height=9,
    )


def _percentiles(
    metric: Metric, title: str, description: str, no_data: str, limits: Limits
) -> Panel:
    buckets = total(over("rate", metric, RATE, IN_FLOW, part="bucket"), "le")
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=Unit.SECONDS,
        no_data=no_data,
        queries=tuple(
            Query(vector=quantile(share, buckets), legend=f"p{share * 100:g}") for share in _SHARES
        ),
        steps=latency_steps(limits),
        colours={"p50": Colour.RESTING, "p99": Colour.NEUTRAL},
        least=0.0,
        leads=Identity.SLO,
        alert="MM2ErrorBudgetBurnFast",
    )


def _heatmap(metric: Metric, title: str, description: str, no_data: str) -> Panel:
    grown = total(over("increase", metric, RATE, IN_FLOW, part="bucket"), "le")
    return Panel(
        title=title,
        description=description,
        kind=Kind.HEATMAP,
        unit=Unit.SECONDS,
        no_data=no_data,
        queries=(Query(vector=grown, legend="{{le}}"),),
        leads=Identity.SLO,
    )
