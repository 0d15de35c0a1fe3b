"""Flow dashboard: one flow, from its impact on consumers over lag and loss to the cause."""

from collections.abc import Callable
from typing import Final

from mm2slo_core.catalogue import flow_metrics
from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.catalogue.prometheus_series import COVERAGE, OBJECTIVE
from mm2slo_core.catalogue.promql import Vector, over, unequal
from mm2slo_core.catalogue.service_metrics import AUDIT_RECORD_SIZE_BYTES
from mm2slo_core.indicators.replication_lag import HEADROOM_LEAST
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_model import (
    CONNECT_STATES,
    FLOW_STATES,
    LINES,
    WARN_FROM_ONE,
    Colour,
    Dashboard,
    Kind,
    Panel,
    PanelUnit,
    Row,
    TableColumn,
    bad_from,
    good_from,
)
from mm2slo_dashboards.panel_definitions import (
    FLOW_ANNOTATIONS,
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
    FLOW_VARIABLE,
    MATCH_FLOW,
    MATCH_TOPIC,
    RATE_VARIABLE,
    TOPICS_VARIABLE,
    bottomk,
    flow_series,
    histogram_quantile,
    increase_by,
    lost_records,
    max_by,
    min_by,
    rate_by,
    state_code,
    sum_by,
    topk,
)

_KEYS = ("sli", "tier")
_QUANTILES = {"p50": 0.5, "p99": 0.99}


def build(limits: ObjectiveLimits) -> Dashboard:
    """One flow, from symptom to cause: impact, lag, possible data loss and causes."""
    return Dashboard(
        uid=DashboardUid.FLOW,
        title="MirrorMaker 2 / Flow",
        description="One flow, from impact to cause.",
        variables=(FLOW_VARIABLE, TOPICS_VARIABLE),
        rows=(
            Row("Is the flow healthy?", _impact(limits)),
            Row("How far behind is it, and could data be lost?", _lag(limits)),
            Row("What is the cause?", _causes()),
        ),
        annotations=FLOW_ANNOTATIONS,
    )


def _impact(limits: ObjectiveLimits) -> tuple[Panel, ...]:
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
            queries={"{{flow}}": FLOW_STATE_CODE},
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
            queries={"{{flow}}": FLOW_STATE_CODE},
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
            TableColumn("Objective", by_objective("max", OBJECTIVE, *_KEYS), decimals=3),
            budget_column(limits, *_KEYS),
            burn_column(limits, *_KEYS),
            TableColumn(
                "Coverage (1h)",
                by_objective("min", COVERAGE["1h"], *_KEYS),
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
    rate = over(
        "rate", flow_metrics.CANARY_LATENCY_SECONDS, RATE_VARIABLE, MATCH_FLOW, part="bucket"
    )
    buckets = sum_by(rate, "le")
    return Panel(
        title="Canary latency p50/p99",
        description="How long do canaries take? Time from sending a canary on the source to its "
        "arrival on the target. Lines: the thresholds of the latency objectives.",
        kind=Kind.SERIES,
        unit=PanelUnit.SECONDS,
        no_data="No canary arrived in this time range: the flow is stopped, or its canary is off.",
        queries={name: histogram_quantile(share, buckets) for name, share in _QUANTILES.items()},
        thresholds=latency_thresholds(limits),
        colours=dict(zip(_QUANTILES, LINES, strict=False)),
        next_dashboard=DashboardUid.SLO,
        alert="MM2ErrorBudgetBurn",
        height=9,
    )


_PARTITION = ("topic", "partition")
_NAMED = "{{topic}} {{partition}}"

_ENDS: Final = ("written on the source", "replicated")
_END_COLOURS: Final = dict(zip(_ENDS, LINES, strict=False))


def _lag(limits: ObjectiveLimits) -> tuple[Panel, ...]:
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
            queries={
                "lag": max_by(flow_metrics.FLOW_LAG_SECONDS, "flow"),
                "time to catch up": max_by(flow_metrics.CATCHUP_ETA_SECONDS, "flow"),
            },
            thresholds=bad_from(limits.lag),
            colours=dict(zip(("lag", "time to catch up"), LINES, strict=False)),
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
        ),
        Panel(
            title="Highest lag by partition",
            description="Which topics or partitions are furthest behind? "
            f"{flow_metrics.REPLICATION_LAG_SECONDS.help} The ten highest by topic and partition, "
            "as fine as the exporter's granularity.",
            kind=Kind.SERIES,
            unit=PanelUnit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries={
                _NAMED: topk(
                    10,
                    max_by(
                        flow_series(flow_metrics.REPLICATION_LAG_SECONDS, MATCH_TOPIC), *_PARTITION
                    ),
                )
            },
            thresholds=bad_from(limits.lag),
            next_dashboard=DashboardUid.FLEET,
            alert="MM2PartitionStalled",
        ),
        Panel(
            title="Records written and replicated",
            description="Does the flow keep up? Records per second written on the source and "
            "replicated; both lines should agree. Then the ten busiest topics, replicated; "
            "`mm2slo plan --connect` shows the busiest tasks.",
            kind=Kind.SERIES,
            unit=PanelUnit.RATE,
            no_data=NO_EXPORTER_DATA,
            queries={**_on_both_ends(_throughput), "topic {{topic}}": _busiest_topics()},
            colours=_END_COLOURS,
            next_dashboard=DashboardUid.AUDIT,
            alert="MM2PartitionStalled",
            width=8,
        ),
        Panel(
            title="Bytes written and replicated",
            description="How much data is it? Records per second times the mean record size of the "
            "newest audit (key, value and headers, uncompressed), whose age is on the Audit "
            "dashboard.",
            kind=Kind.SERIES,
            unit=PanelUnit.BYTE_RATE,
            no_data="The flow was not audited, or the report service is not scraped.",
            queries=_on_both_ends(_bytes),
            colours=_END_COLOURS,
            next_dashboard=DashboardUid.AUDIT,
            alert="MM2PartitionStalled",
            width=8,
        ),
        Panel(
            title="Retention headroom",
            description="When would retention remove unreplicated records? Time until then by "
            "topic and the limit that applies, the ten smallest. It alerts when more than half "
            f"is used and it is going to fall below {HEADROOM_LEAST / 60:g} minutes.",
            kind=Kind.SERIES,
            unit=PanelUnit.SECONDS,
            no_data="No limit applies: retention is unlimited, or nothing was written yet.",
            queries={
                f"{_NAMED} by {{{{limit}}}}": bottomk(
                    10,
                    min_by(
                        flow_series(flow_metrics.RETENTION_HEADROOM_SECONDS, MATCH_TOPIC),
                        *_PARTITION,
                        "limit",
                    ),
                )
            },
            next_dashboard=DashboardUid.FLEET,
            alert="MM2RetentionHeadroomLow",
            width=8,
        ),
    )


def _on_both_ends(rate: Callable[[Metric], Vector]) -> dict[str, Vector]:
    metrics = (flow_metrics.SOURCE_RECORDS_TOTAL, flow_metrics.REPLICATED_RECORDS_TOTAL)
    return {name: rate(metric) for name, metric in zip(_ENDS, metrics, strict=True)}


def _throughput(metric: Metric) -> Vector:
    return rate_by(metric, MATCH_FLOW, MATCH_TOPIC, by=("flow",), within="topic")


def _busiest_topics() -> Vector:
    matchers = (MATCH_FLOW, MATCH_TOPIC, unequal("topic", ""))
    rate = over("rate", flow_metrics.REPLICATED_RECORDS_TOTAL, RATE_VARIABLE, *matchers)
    return topk(10, max_by(rate, "topic"))


def _bytes(metric: Metric) -> Vector:
    records, size = _throughput(metric), max_by(AUDIT_RECORD_SIZE_BYTES, "flow")
    return Vector(f"{records} * on (flow) {size}", records.labels)


_CANARIES: Final = (
    (flow_metrics.CANARY_LOST_TOTAL, "canaries lost", Colour.BAD),
    (flow_metrics.CANARY_LATE_TOTAL, "canaries late", Colour.WARNING),
    (flow_metrics.CANARY_DUPLICATES_TOTAL, "canaries duplicated", Colour.WARNING),
    (flow_metrics.CANARY_REORDERED_TOTAL, "canaries reordered", Colour.WARNING),
    (flow_metrics.CANARY_MOVED_TOTAL, "canaries moved", Colour.WARNING),
    (flow_metrics.CANARY_UNKNOWN_TOTAL, "canaries unknown", Colour.UNKNOWN),
)


def _causes() -> tuple[Panel, ...]:
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
            queries={
                "{{connector}}": state_code(
                    flow_metrics.CONNECTOR_STATE, CONNECT_STATES, *task[:2], matchers=(MATCH_FLOW,)
                ),
                "{{connector}} {{task}}": state_code(
                    flow_metrics.TASK_STATE, CONNECT_STATES, *task, matchers=(MATCH_FLOW,)
                ),
            },
            states=CONNECT_STATES,
            next_dashboard=DashboardUid.PIPELINE,
            alert="MM2TaskFailed",
            width=8,
        ),
        Panel(
            title="Record faults",
            description="Were records lost, held back or not replicated as they were sent? "
            "Lost records that no state record contains yet, partitions that are stalled and "
            "records held back by open transactions now; the others in the selected time range. "
            "Good is 0 of each. If the range starts before the first scrape, all earlier losses "
            "count.",
            kind=Kind.BARS,
            unit=PanelUnit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries={
                "records lost to retention": sum_by(
                    lost_records(MATCH_FLOW, MATCH_TOPIC, by=("flow", "topic")), "flow"
                ),
                "lost records not counted yet": max_by(
                    flow_metrics.RETENTION_PENDING_LOST_RECORDS, "flow"
                ),
                "partitions stalled": _now(flow_metrics.STALLED_PARTITIONS, "topic"),
                "records held back by open transactions": _now(
                    flow_metrics.OPEN_TRANSACTION_RECORDS, "topic", "partition"
                ),
                **{name: _canaries(metric) for metric, name, _ in _CANARIES},
            },
            colours={
                "records lost to retention": Colour.BAD,
                "lost records not counted yet": Colour.BAD,
                **{name: colour for _, name, colour in _CANARIES},
            },
            thresholds=WARN_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.AUDIT,
            alert="MM2RecordsLost",
            width=8,
        ),
        Panel(
            title="Topic faults",
            description="Where do source and target differ, and which topics changed? Differences "
            "that MirrorMaker 2 should have resolved; topics re-created and truncated in the "
            "selected time range. Good is 0 of each.",
            kind=Kind.BARS,
            unit=PanelUnit.COUNT,
            no_data="Topics have not been compared yet, or no exporter publishes the flow.",
            queries={
                "missing topics": _now(flow_metrics.TOPIC_MISSING, "topic"),
                "partition count differs": _now(flow_metrics.PARTITION_DRIFT, "topic"),
                "partitions without a copy": _now(
                    flow_metrics.ASSIGNED_MISSING_PARTITIONS, "topic"
                ),
                "partitions without a task": _now(flow_metrics.UNASSIGNED_PARTITIONS, "topic"),
                "settings differ": _now(flow_metrics.TOPIC_CONFIG_DRIFT, "topic", "config"),
                "topics re-created on {{side}}": _within_range(
                    flow_metrics.TOPIC_RECREATIONS_TOTAL, "topic", "side", by=("side",)
                ),
                "partitions truncated": _within_range(
                    flow_metrics.SOURCE_TRUNCATIONS_TOTAL, "topic"
                ),
            },
            thresholds=WARN_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.AUDIT,
            alert="MM2PartitionDrift",
            width=8,
        ),
    )


def _now(metric: Metric, *labels: str) -> Vector:
    return sum_by(max_by(flow_series(metric, MATCH_TOPIC), "flow", *labels), "flow")


def _within_range(metric: Metric, *labels: str, by: tuple[str, ...] = ()) -> Vector:
    found = increase_by(metric, MATCH_FLOW, MATCH_TOPIC, by=("flow", *labels))
    return sum_by(found, "flow", *by)


def _canaries(metric: Metric) -> Vector:
    return sum_by(increase_by(metric, MATCH_FLOW, by=("flow", "carrier")), "flow")
