"""Panels with bounds of audit results: shares of records and keys, and latency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.audit.record_verdict import Verdict
from mm2slo_core.catalogue.audit_result_metrics import (
    AUDIT_KEYS_RATIO,
    AUDIT_LATENCY_SECONDS,
    AUDIT_RECORDS_RATIO,
    Bound,
    LatencyMeasure,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import equal, matching
from mm2slo_dashboards.boards.shared_definitions import NO_AUDIT_DATA, latency_thresholds
from mm2slo_dashboards.colours import Colour
from mm2slo_dashboards.dashboard_model import Column, Kind, Panel, Query, Thresholds, Unit
from mm2slo_dashboards.panel_queries import flow_series, max_by, min_by, topk

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric
    from mm2slo_core.promql import Matcher, Vector
    from mm2slo_dashboards.objective_limits import Limits

BoundedMetric = tuple["Metric", tuple["Matcher", ...]]
"""A metric with bounds, and the matchers that select one of its values."""

LOST: Final[BoundedMetric] = (AUDIT_RECORDS_RATIO, (equal("verdict", Verdict.LOST.value),))
LATENCY_P99: Final[BoundedMetric] = (
    AUDIT_LATENCY_SECONDS,
    (equal("measure", LatencyMeasure.END_TO_END.value), equal("percentile", "p99")),
)
_P50_AND_P99: Final[BoundedMetric] = (AUDIT_LATENCY_SECONDS, (matching("percentile", "p50|p99"),))
_PROVEN: Final = Thresholds(Colour.GOOD, ((1e-9, Colour.WARNING),))
"""A lower bound above zero means that it happened."""
_NO_KEYS: Final = "No audit covered keys: records have none, or no audit has ended."
_NO_LATENCY: Final = (
    "No arrival times: an audit needs the exporter's watermark timeline and enough records, or "
    "no audit has ended."
)


def lower_bound(bounded: BoundedMetric, *labels: str) -> Vector:
    """The lower bound by *labels*."""
    return min_by(_bound(bounded, Bound.LOWER), *labels)


def upper_bound(bounded: BoundedMetric, *labels: str) -> Vector:
    """The upper bound by *labels*."""
    return max_by(_bound(bounded, Bound.UPPER), *labels)


def precision_panels() -> tuple[Panel, ...]:
    """Shares of records and keys."""
    return (
        Panel(
            title="Share of records by verdict",
            description="What share of records was lost, altered, moved or replayed? Of all "
            "records, with 95 % confidence; exact for a census. A lower bound above 0 means "
            "that it happened. A sample counts altered records as lost.",
            kind=Kind.TABLE,
            unit=Unit.SHARE,
            no_data=NO_AUDIT_DATA,
            keys={"flow": "Flow", "verdict": "Verdict"},
            columns=_shares((AUDIT_RECORDS_RATIO, ()), "flow", "verdict"),
            sort=("-Lower bound", "-Upper bound"),
            next_dashboard=DashboardUid.FLOW,
            alert="MM2RecordsLost",
            width=14,
        ),
        Panel(
            title="Share of keys with broken affinity",
            description="What share of keys lost its partition or order? Of all keys, with 95 % "
            "confidence; exact for a census. A sample of several topics has no bounds, since "
            "they may share keys.",
            kind=Kind.TABLE,
            unit=Unit.SHARE,
            no_data=_NO_KEYS,
            keys={"flow": "Flow", "property": "Property"},
            columns=_shares((AUDIT_KEYS_RATIO, ()), "flow", "property"),
            sort=("-Lower bound", "-Upper bound"),
            next_dashboard=DashboardUid.FLOW,
            alert="MM2AffinityBroken",
            width=10,
        ),
    )


def latency_panels(limits: Limits) -> tuple[Panel, ...]:
    """Latency end to end, and from arrival to arrival."""
    labels = ("flow", "measure", "percentile")
    steps = latency_thresholds(limits)
    return (
        Panel(
            title="Latency bounds",
            description="How long did records take? Bounds of p50 and p99: end to end from the "
            "producer's timestamp, transfer from the arrival on the source. An empty lower "
            "bound is unknown.",
            kind=Kind.TABLE,
            unit=Unit.SECONDS,
            no_data=_NO_LATENCY,
            keys={"flow": "Flow", "measure": "Measure", "percentile": "Percentile"},
            columns=(
                Column(
                    title="Lower bound",
                    vector=lower_bound(_P50_AND_P99, *labels),
                    unit=Unit.SECONDS,
                ),
                Column(
                    title="Upper bound",
                    vector=upper_bound(_P50_AND_P99, *labels),
                    unit=Unit.SECONDS,
                    thresholds=steps,
                ),
            ),
            sort=("-Upper bound",),
            next_dashboard=DashboardUid.SLO,
            alert="MM2ErrorBudgetBurn",
            width=14,
        ),
        Panel(
            title="End-to-end latency p99",
            description="Which flows were slow, and when? Upper bound of the end-to-end p99 in "
            "the latest audit, the ten slowest flows. Lines: the thresholds of the latency "
            "objectives.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=_NO_LATENCY,
            queries=(Query(vector=topk(10, upper_bound(LATENCY_P99, "flow")), legend="{{flow}}"),),
            thresholds=steps,
            colours=limits.flow_colours,
            minimum=0.0,
            next_dashboard=DashboardUid.SLO,
            alert="MM2ErrorBudgetBurn",
            width=10,
        ),
    )


def _bound(bounded: BoundedMetric, bound: Bound) -> Vector:
    metric, matchers = bounded
    return flow_series(metric, *matchers, equal("bound", bound.value))


def _shares(bounded: BoundedMetric, *labels: str) -> tuple[Column, ...]:
    return (
        Column(
            title="Lower bound",
            vector=lower_bound(bounded, *labels),
            unit=Unit.SHARE,
            thresholds=_PROVEN,
        ),
        Column(
            title="Estimate",
            vector=max_by(_bound(bounded, Bound.ESTIMATE), *labels),
            unit=Unit.SHARE,
        ),
        Column(title="Upper bound", vector=upper_bound(bounded, *labels), unit=Unit.SHARE),
    )
