"""Flow dashboard: the rows with impact on consumers, lag and loss, and possible causes."""

from typing import Final

from mm2slo_core.catalogue.flow_metrics import (
    ASSIGNED_MISSING_PARTITIONS,
    CANARY_DUPLICATES_TOTAL,
    CANARY_LATE_TOTAL,
    CANARY_LATENCY_SECONDS,
    CANARY_LOST_TOTAL,
    CANARY_MOVED_TOTAL,
    CANARY_REORDERED_TOTAL,
    CANARY_UNKNOWN_TOTAL,
    CATCHUP_ETA_SECONDS,
    CONNECTOR_STATE,
    FLOW_LAG_SECONDS,
    OPEN_TRANSACTION_RECORDS,
    PARTITION_DRIFT,
    REPLICATED_RECORDS_TOTAL,
    REPLICATION_LAG_SECONDS,
    RETENTION_HEADROOM_SECONDS,
    RETENTION_LOST_RECORDS_TOTAL,
    SOURCE_RECORDS_TOTAL,
    SOURCE_TRUNCATIONS_TOTAL,
    STALLED_PARTITIONS,
    TASK_STATE,
    TOPIC_CONFIG_DRIFT,
    TOPIC_MISSING,
    TOPIC_RECREATIONS_TOTAL,
    UNASSIGNED_PARTITIONS,
)
from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.catalogue.prometheus_series import COVERAGE, OBJECTIVE
from mm2slo_core.catalogue.promql import Vector, over
from mm2slo_core.catalogue.service_metrics import AUDIT_RECORD_SIZE_BYTES
from mm2slo_core.indicators.replication_lag import HEADROOM_AHEAD, HEADROOM_LEAST
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_model import (
    CONNECT_STATES,
    FLOW_STATES,
    LINES,
    WARN_FROM_ONE,
    Colour,
    Kind,
    Panel,
    PanelThresholds,
    PanelUnit,
    Query,
    TableColumn,
    bad_from,
    good_from,
)
from mm2slo_dashboards.panel_definitions import (
    FLOW_STATE_CODE,
    NO_BUDGET_DATA,
    NO_EXPORTER_DATA,
    ObjectiveLimits,
    budget_column,
    burn_column,
    by_objective,
    latency_thresholds,
)
from mm2slo_dashboards.panel_queries import (
    MATCH_FLOW,
    MATCH_TOPIC,
    RATE_VARIABLE,
    bottomk,
    flow_series,
    histogram_quantile,
    increase_by,
    max_by,
    min_by,
    rate_by,
    state_code,
    sum_by,
    topk,
)

_KEYS = ("sli", "tier")
_QUANTILES = {"p50": 0.5, "p99": 0.99}


def impact_panels(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    """State now and over time, objectives, latency of canaries."""
    return (
        Panel(
            title="Flow state",
            description="What state is the flow in? Running: records or canaries arrive. Idle: "
            "nothing to replicate. Stopped: records or canaries are pending and none arrive. "
            "Unknown: the state cannot be determined.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
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
            unit=PanelUnit.COUNT,
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


def _objectives(limits: ObjectiveLimits) -> Panel:
    return Panel(
        title="Objectives",
        description="Which objective is at risk? Each SLI with its objective, remaining budget, "
        "burn rate and coverage over one hour. With low coverage the values are not reliable.",
        kind=Kind.TABLE,
        unit=PanelUnit.SHARE,
        no_data=NO_BUDGET_DATA,
        keys={"sli": "SLI", "tier": "Tier"},
        columns=(
            TableColumn(
                title="Objective",
                vector=by_objective("max", OBJECTIVE, *_KEYS),
                unit=PanelUnit.SHARE,
                decimals=3,
            ),
            budget_column(limits, *_KEYS),
            burn_column(limits, *_KEYS),
            TableColumn(
                title="Coverage (1h)",
                vector=by_objective("min", COVERAGE["1h"], *_KEYS),
                unit=PanelUnit.SHARE,
                thresholds=good_from(limits.coverage),
                decimals=1,
            ),
        ),
        sort=("Remaining budget",),
        next_dashboard=DashboardUid.SLO,
        alert="MM2ErrorBudgetExhausted",
        height=9,
    )


def _latency(limits: ObjectiveLimits) -> Panel:
    rate = over("rate", CANARY_LATENCY_SECONDS, RATE_VARIABLE, MATCH_FLOW, part="bucket")
    buckets = sum_by(rate, "le")
    return Panel(
        title="Canary latency p50/p99",
        description="How long do canaries take? Time from sending a canary on the source to its "
        "arrival on the target. Lines: the thresholds of the latency objectives.",
        kind=Kind.SERIES,
        unit=PanelUnit.SECONDS,
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


_PARTITION = ("topic", "partition")
_NAMED = "{{topic}} {{partition}}"

_HEADROOM: Final = PanelThresholds(
    Colour.BAD, ((HEADROOM_LEAST, Colour.WARNING), (HEADROOM_AHEAD, Colour.GOOD))
)
"""Bounds of `MM2RetentionHeadroomLow`."""


def lag_panels(limits: ObjectiveLimits) -> tuple[Panel, ...]:
    """Lag of the flow and of its worst partitions, throughput, retention headroom."""
    return (
        Panel(
            title="Lag and time to catch up",
            description="How far behind is the flow, and when will it have caught up? Age of the "
            "oldest unreplicated record, 0 without one; it grows while the flow is stopped. Time "
            "until the lag is gone at the current net rate, absent while it does not shrink. The "
            f"freshness threshold is {limits.lag:g} s.",
            kind=Kind.SERIES,
            unit=PanelUnit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(vector=max_by(flow_series(FLOW_LAG_SECONDS), "flow"), legend="lag"),
                Query(
                    vector=max_by(flow_series(CATCHUP_ETA_SECONDS), "flow"),
                    legend="time to catch up",
                ),
            ),
            thresholds=bad_from(limits.lag),
            colours=dict(zip(("lag", "time to catch up"), LINES, strict=False)),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
        ),
        Panel(
            title="Highest lag by partition",
            description="Which topics or partitions are furthest behind? "
            f"{REPLICATION_LAG_SECONDS.help} The ten highest by topic and partition, as fine as "
            "the exporter's granularity.",
            kind=Kind.SERIES,
            unit=PanelUnit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=topk(
                        10, max_by(flow_series(REPLICATION_LAG_SECONDS, MATCH_TOPIC), *_PARTITION)
                    ),
                    legend=_NAMED,
                ),
            ),
            thresholds=bad_from(limits.lag),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
        ),
        _throughput_panel(
            "Records written and replicated",
            "Does the flow keep up? Records per second written on the source and replicated; both "
            "lines should agree.",
            PanelUnit.RATE,
            *(_throughput(each) for each in (SOURCE_RECORDS_TOTAL, REPLICATED_RECORDS_TOTAL)),
            no_data=NO_EXPORTER_DATA,
        ),
        _throughput_panel(
            "Bytes written and replicated",
            "How much data is it? Records per second times the mean record size of the newest "
            "audit (key, value and headers, uncompressed), whose age is on the Audit dashboard.",
            PanelUnit.BYTE_RATE,
            *(_bytes(each) for each in (SOURCE_RECORDS_TOTAL, REPLICATED_RECORDS_TOTAL)),
            no_data="The flow was not audited, or the report service is not scraped.",
        ),
        Panel(
            title="Retention headroom",
            description="When would retention remove unreplicated records? Time until then by "
            "topic and the limit that applies, the ten smallest.",
            kind=Kind.SERIES,
            unit=PanelUnit.SECONDS,
            no_data="No limit applies: retention is unlimited, or nothing was written yet.",
            queries=(
                Query(
                    vector=bottomk(
                        10,
                        min_by(
                            flow_series(RETENTION_HEADROOM_SECONDS, MATCH_TOPIC),
                            *_PARTITION,
                            "limit",
                        ),
                    ),
                    legend=f"{_NAMED} by {{{{limit}}}}",
                ),
            ),
            thresholds=_HEADROOM,
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2RetentionHeadroomLow",
            width=8,
        ),
    )


def _throughput_panel(
    title: str, description: str, unit: PanelUnit, *vectors: Vector, no_data: str
) -> Panel:
    queries = dict(zip(("written on the source", "replicated"), vectors, strict=True))
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=unit,
        no_data=no_data,
        queries=tuple(Query(vector=each, legend=name) for name, each in queries.items()),
        colours=dict(zip(queries, LINES, strict=False)),
        minimum=0.0,
        next_dashboard=DashboardUid.AUDIT,
        alert="MM2PartitionStalled",
        width=8,
    )


def _throughput(metric: Metric) -> Vector:
    return rate_by(metric, MATCH_FLOW, MATCH_TOPIC, by=("flow",), within="topic")


def _bytes(metric: Metric) -> Vector:
    records, size = _throughput(metric), max_by(flow_series(AUDIT_RECORD_SIZE_BYTES), "flow")
    return Vector(f"{records} * on (flow) {size}", records.labels)


_CANARIES: Final = (
    (CANARY_LOST_TOTAL, "canaries lost", Colour.BAD),
    (CANARY_LATE_TOTAL, "canaries late", Colour.WARNING),
    (CANARY_DUPLICATES_TOTAL, "canaries duplicated", Colour.WARNING),
    (CANARY_REORDERED_TOTAL, "canaries reordered", Colour.WARNING),
    (CANARY_MOVED_TOTAL, "canaries moved", Colour.WARNING),
    (CANARY_UNKNOWN_TOTAL, "canaries unknown", Colour.UNKNOWN),
)

_DRIFT: Final = (
    (TOPIC_MISSING, "missing topics"),
    (PARTITION_DRIFT, "partition count differs"),
    (ASSIGNED_MISSING_PARTITIONS, "partitions without a copy"),
    (UNASSIGNED_PARTITIONS, "partitions without a task"),
    (TOPIC_CONFIG_DRIFT, "settings differ"),
)
_LOST: Final = "records lost to retention"


def cause_panels() -> tuple[Panel, ...]:
    """Connectors and tasks, faults of records, faults of topics."""
    task = ("flow", "connector", "task")
    return (
        Panel(
            title="Connector and task states",
            description="Are the connectors and tasks running? Their state in the Connect status "
            "topic. A failed connector starts no tasks, a paused one replicates nothing, and "
            "Connect does not restart a failed task by itself.",
            kind=Kind.TIMELINE,
            unit=PanelUnit.COUNT,
            no_data="No connector has reported a state: the status topic is not read, or none "
            "was ever started.",
            queries=(
                Query(
                    vector=state_code(
                        CONNECTOR_STATE, CONNECT_STATES, *task[:2], matchers=(MATCH_FLOW,)
                    ),
                    legend="{{connector}}",
                ),
                Query(
                    vector=state_code(TASK_STATE, CONNECT_STATES, *task, matchers=(MATCH_FLOW,)),
                    legend="{{connector}} {{task}}",
                ),
            ),
            states=CONNECT_STATES,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2TaskFailed",
            width=8,
        ),
        _counts(
            "Record faults",
            "Were records lost, held back or not replicated as they were sent? Partitions that are "
            "stalled and records held back by open transactions now; the others in the selected "
            "time range. Good is 0 of each.",
            NO_EXPORTER_DATA,
            "MM2RecordsLost",
            (_within_range(RETENTION_LOST_RECORDS_TOTAL, "topic"), _LOST),
            (_now(STALLED_PARTITIONS, "topic"), "partitions stalled"),
            (
                _now(OPEN_TRANSACTION_RECORDS, "topic", "partition"),
                "records held back by open transactions",
            ),
            *((_canaries(metric), name) for metric, name, _ in _CANARIES),
            colours={_LOST: Colour.BAD, **{name: colour for _, name, colour in _CANARIES}},
        ),
        _counts(
            "Topic faults",
            "Where do source and target differ, and which topics changed? Differences that "
            "MirrorMaker 2 should have resolved; topics re-created and truncated in the selected "
            "time range. Good is 0 of each.",
            "Topics have not been compared yet.",
            "MM2PartitionDrift",
            *((_now(metric, *_labels(metric)), name) for metric, name in _DRIFT),
            (
                _within_range(TOPIC_RECREATIONS_TOTAL, "topic", "side", by=("side",)),
                "topics re-created on {{side}}",
            ),
            (_within_range(SOURCE_TRUNCATIONS_TOTAL, "topic"), "partitions truncated"),
        ),
    )


def _counts(
    title: str,
    description: str,
    no_data: str,
    alert: str,
    *queries: tuple[Vector, str],
    colours: dict[str, str] | None = None,
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.BARS,
        unit=PanelUnit.COUNT,
        no_data=no_data,
        queries=tuple(Query(vector=each, legend=name, instant=True) for each, name in queries),
        colours=colours or {},
        thresholds=WARN_FROM_ONE,
        decimals=0,
        minimum=0.0,
        next_dashboard=DashboardUid.AUDIT,
        alert=alert,
        width=8,
    )


def _now(metric: Metric, *labels: str) -> Vector:
    return sum_by(max_by(flow_series(metric, MATCH_TOPIC), "flow", *labels), "flow")


def _within_range(metric: Metric, *labels: str, by: tuple[str, ...] = ()) -> Vector:
    found = increase_by(metric, MATCH_FLOW, MATCH_TOPIC, by=("flow", *labels))
    return sum_by(found, "flow", *by)


def _canaries(metric: Metric) -> Vector:
    return sum_by(increase_by(metric, MATCH_FLOW, by=("flow", "carrier")), "flow")


def _labels(metric: Metric) -> tuple[str, ...]:
    return ("topic", "config") if metric is TOPIC_CONFIG_DRIFT else ("topic",)
