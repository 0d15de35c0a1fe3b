"""Audit dashboard: whether records arrived as sent, up to when, and which faults were found."""

from functools import partial
from typing import Final

from mm2slo_core.audit.unit_outcome import FAULTS, Verdict
from mm2slo_core.catalogue import service_metrics
from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.catalogue.promql import Matcher, Vector, equal, matching, select
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_model import (
    BAD_FROM_ONE,
    WARN_FROM_ONE,
    Colour,
    Dashboard,
    Kind,
    Panel,
    PanelThresholds,
    PanelUnit,
    Row,
    TableColumn,
)
from mm2slo_dashboards.panel_definitions import (
    FLOW_ANNOTATIONS,
    NO_AUDIT_DATA,
    ObjectiveLimits,
    latency_thresholds,
)
from mm2slo_dashboards.panel_queries import (
    FLOWS_VARIABLE,
    flow_series,
    in_milliseconds,
    max_by,
    min_by,
    seconds_since,
    sum_by,
    topk,
)

_VERDICTS: Final = {
    Verdict.MATCHED.value: Colour.GOOD,
    Verdict.PENDING.value: Colour.RESTING,
    Verdict.UNAUDITABLE.value: Colour.UNKNOWN,
    **{verdict.value: Colour.BAD for verdict in Verdict if verdict in FAULTS},
}

BoundedMetric = tuple[Metric, tuple[Matcher, ...]]
"""A metric with bounds, and the matchers that select one of its values."""
_LOST: Final[BoundedMetric] = (
    service_metrics.AUDIT_RECORDS_RATIO,
    (equal("verdict", Verdict.LOST.value),),
)

_LATENCY_P99: Final[BoundedMetric] = (
    service_metrics.AUDIT_LATENCY_SECONDS,
    (equal("measure", service_metrics.LatencyMeasure.END_TO_END.value), equal("percentile", "p99")),
)
_P50_AND_P99: Final[BoundedMetric] = (
    service_metrics.AUDIT_LATENCY_SECONDS,
    (matching("percentile", "p50|p99"),),
)

_PROVEN: Final = PanelThresholds(Colour.GOOD, ((1e-9, Colour.WARNING),))
"""A lower bound above zero means that it happened."""
_NO_KEYS: Final = "No audit covered keys: records have none, or no audit has ended."

_NO_LATENCY: Final = (
    "No arrival times: an audit needs the exporter's watermark timeline and enough records, or "
    "no audit has ended."
)


_panel: Final = partial(Panel, no_data=NO_AUDIT_DATA, next_dashboard=DashboardUid.FLOW)
"""Most panels have one value a flow, from its latest audit."""


def build(limits: ObjectiveLimits) -> Dashboard:
    """Audit results by flow."""
    return Dashboard(
        uid=DashboardUid.AUDIT,
        title="MirrorMaker 2 / Audit",
        description="Did records arrive as they were sent? Results of the latest audit of each "
        "flow, published by the report service.",
        variables=(FLOWS_VARIABLE,),
        rows=(
            Row("Did everything arrive as it was sent?", _verdict(limits)),
            Row("Which flows, up to when?", (_flows(), *_runs(limits))),
            Row("How precise are the results?", _precision()),
            Row("How long did records take?", _latency(limits)),
        ),
        annotations=FLOW_ANNOTATIONS,
        time_from="now-7d",
        refresh="1m",
    )


def _verdict(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    faults = sum_by(max_by(service_metrics.AUDIT_FAULTS_RECORDS, "flow"))
    return (
        _panel(
            title="Faulty records",
            description="How many records are faulty? Records that the latest audits found "
            "lost, overdue, expired, moved, altered or unmasked. Good is 0.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            queries={"": faults},
            thresholds=BAD_FROM_ONE,
            decimals=0,
            alert="MM2RecordsLost",
            width=4,
            height=8,
        ),
        _verdicts(),
        _panel(
            title="Faulty records over time",
            description="When were faulty records found? Faulty records in the latest audit of "
            "each flow.",
            kind=Kind.SERIES,
            unit=PanelUnit.COUNT,
            queries={"{{flow}}": topk(10, max_by(service_metrics.AUDIT_FAULTS_RECORDS, "flow"))},
            colours=limits.flow_colours,
            thresholds=BAD_FROM_ONE,
            alert="MM2RecordsLost",
            width=10,
        ),
    )


def _flows() -> Panel:
    return _panel(
        title="Latest audit by flow",
        description="What did the latest audit of each flow find? Most faults first. Complete "
        "up to: every record with an earlier timestamp is replicated or reported as a fault.",
        kind=Kind.TABLE,
        unit=PanelUnit.COUNT,
        keys={"flow": "Flow"},
        columns=(
            TableColumn(
                "Faulty",
                max_by(service_metrics.AUDIT_FAULTS_RECORDS, "flow"),
                thresholds=BAD_FROM_ONE,
            ),
            TableColumn(
                "Audited", sum_by(max_by(service_metrics.AUDIT_RECORDS, "flow", "verdict"), "flow")
            ),
            TableColumn("Lost, upper bound", _upper_bound(_LOST, "flow"), PanelUnit.SHARE),
            TableColumn("p99, upper bound", _upper_bound(_LATENCY_P99, "flow"), PanelUnit.SECONDS),
            TableColumn(
                "Sampled", min_by(service_metrics.AUDIT_SAMPLED_RATIO, "flow"), PanelUnit.SHARE
            ),
            TableColumn(
                "Complete up to",
                _timestamp(service_metrics.AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS),
                PanelUnit.TIMESTAMP,
            ),
            TableColumn(
                "Window end",
                _timestamp(service_metrics.AUDIT_WINDOW_END_TIMESTAMP_SECONDS),
                PanelUnit.TIMESTAMP,
            ),
            TableColumn(
                "Ended",
                _timestamp(service_metrics.AUDIT_LAST_RUN_TIMESTAMP_SECONDS),
                PanelUnit.TIMESTAMP,
            ),
            TableColumn(
                "Unauditable topics",
                max_by(service_metrics.AUDIT_UNAUDITED_TOPICS, "flow"),
                thresholds=WARN_FROM_ONE,
            ),
        ),
        sort=("-Faulty", "Complete up to"),
        alert="MM2RecordsLost",
        width=24,
    )


def _timestamp(metric: Metric) -> Vector:
    return in_milliseconds(max_by(metric, "flow"))


def _verdicts() -> Panel:
    """Records by verdict, but for matched ones."""
    others = matching(
        "verdict", "|".join(each.value for each in Verdict if each is not Verdict.MATCHED)
    )
    found = sum_by(
        max_by(flow_series(service_metrics.AUDIT_RECORDS, others), "flow", "verdict"), "verdict"
    )
    return _panel(
        title="Verdicts other than matched",
        description="Which verdicts did the latest audits give? Records by verdict. Pending "
        "records may still be replicated; the audit's report has evidence of each anomaly.",
        kind=Kind.BARS,
        unit=PanelUnit.COUNT,
        queries={"{{verdict}}": found},
        colours=_VERDICTS,
        thresholds=WARN_FROM_ONE,
        decimals=0,
        alert="MM2RecordsLost",
        width=10,
    )


def _runs(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    """Age of the complete-up-to time, and audit runs by state."""
    complete = max_by(service_metrics.AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS, "flow")
    return (
        _panel(
            title="Age of complete-up-to",
            description="Up to when is each flow proven complete? Time since then, the ten "
            "longest; it falls with each audit.",
            kind=Kind.SERIES,
            unit=PanelUnit.SECONDS,
            queries={"{{flow}}": topk(10, seconds_since(complete))},
            colours=limits.flow_colours,
            width=10,
        ),
        _panel(
            title="Audit runs by state",
            description="Do audits run and finish? Runs in the results store; the report of a "
            "failed run has its reason.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            queries={"{{state}}": max_by(select(service_metrics.AUDIT_RUNS), "state")},
            colours={"finished": Colour.NEUTRAL, "running": Colour.GOOD, "failed": Colour.BAD},
            decimals=0,
            next_dashboard=DashboardUid.PIPELINE,
            width=14,
        ),
    )


def _precision() -> tuple[Panel, ...]:
    """Shares of records and keys."""
    return (
        _panel(
            title="Share of records by verdict",
            description="What share of records was lost, altered, moved or replayed? Of all "
            "records, with 95 % confidence; exact for a census. A lower bound above 0 means "
            "that it happened. A sample counts altered records as lost.",
            kind=Kind.TABLE,
            unit=PanelUnit.SHARE,
            keys={"flow": "Flow", "verdict": "Verdict"},
            columns=_shares((service_metrics.AUDIT_RECORDS_RATIO, ()), "flow", "verdict"),
            sort=("-Lower bound", "-Upper bound"),
            alert="MM2RecordsLost",
            width=14,
        ),
        _panel(
            title="Share of keys with broken affinity",
            description="What share of keys lost its partition or order? Of all keys, with 95 % "
            "confidence; exact for a census. A sample of several topics has no bounds, since "
            "they may share keys.",
            kind=Kind.TABLE,
            unit=PanelUnit.SHARE,
            no_data=_NO_KEYS,
            keys={"flow": "Flow", "property": "Property"},
            columns=_shares((service_metrics.AUDIT_KEYS_RATIO, ()), "flow", "property"),
            sort=("-Lower bound", "-Upper bound"),
            alert="MM2AffinityBroken",
            width=10,
        ),
    )


def _latency(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    """Latency end to end, and from arrival to arrival."""
    labels = ("flow", "measure", "percentile")
    steps = latency_thresholds(limits)
    return (
        _panel(
            title="Latency bounds",
            description="How long did records take? Bounds of p50 and p99: end to end from the "
            "producer's timestamp, transfer from the arrival on the source. An empty lower "
            "bound is unknown.",
            kind=Kind.TABLE,
            unit=PanelUnit.SECONDS,
            no_data=_NO_LATENCY,
            keys={"flow": "Flow", "measure": "Measure", "percentile": "Percentile"},
            columns=(
                TableColumn("Lower bound", _lower_bound(_P50_AND_P99, *labels)),
                TableColumn("Upper bound", _upper_bound(_P50_AND_P99, *labels), thresholds=steps),
            ),
            sort=("-Upper bound",),
            next_dashboard=DashboardUid.SLO,
            alert="MM2ErrorBudgetBurn",
            width=14,
        ),
        _panel(
            title="End-to-end latency p99",
            description="Which flows were slow, and when? Upper bound of the end-to-end p99 in "
            "the latest audit, the ten slowest flows. Lines: the thresholds of the latency "
            "objectives.",
            kind=Kind.SERIES,
            unit=PanelUnit.SECONDS,
            no_data=_NO_LATENCY,
            queries={"{{flow}}": topk(10, _upper_bound(_LATENCY_P99, "flow"))},
            thresholds=steps,
            colours=limits.flow_colours,
            next_dashboard=DashboardUid.SLO,
            alert="MM2ErrorBudgetBurn",
            width=10,
        ),
    )


def _lower_bound(bounded: BoundedMetric, *labels: str) -> Vector:
    """The lower bound by *labels*."""
    return min_by(_bound(bounded, service_metrics.Bound.LOWER), *labels)


def _upper_bound(bounded: BoundedMetric, *labels: str) -> Vector:
    """The upper bound by *labels*."""
    return max_by(_bound(bounded, service_metrics.Bound.UPPER), *labels)


def _bound(bounded: BoundedMetric, bound: service_metrics.Bound) -> Vector:
    metric, matchers = bounded
    return flow_series(metric, *matchers, equal("bound", bound.value))


def _shares(bounded: BoundedMetric, *labels: str) -> tuple[TableColumn, ...]:
    return (
        TableColumn("Lower bound", _lower_bound(bounded, *labels), thresholds=_PROVEN),
        TableColumn("Estimate", max_by(_bound(bounded, service_metrics.Bound.ESTIMATE), *labels)),
        TableColumn("Upper bound", _upper_bound(bounded, *labels)),
    )
