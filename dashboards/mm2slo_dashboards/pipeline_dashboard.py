"""Pipeline dashboard: whether the flows are monitored, alerts delivered, and at what cost."""

from functools import partial
from typing import Final

from mm2slo_core.catalogue import service_metrics
from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.catalogue.prometheus_series import (
    ITERATIONS_MISSED,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
    UP,
)
from mm2slo_core.catalogue.promql import Matcher, Vector, equal, matching, over, select
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_model import (
    BAD_FROM_ONE,
    UP_STATES,
    WARN_FROM_ONE,
    Dashboard,
    Kind,
    Panel,
    PanelUnit,
    Row,
)
from mm2slo_dashboards.panel_queries import (
    RANGE_VARIABLE,
    RATE_VARIABLE,
    filter_by,
    max_by,
    min_by,
    seconds_since,
    sum_by,
    topk,
)

NO_EXPORTER_DATA: Final = "Prometheus scrapes no exporter, or under another job."

REPLICA: Final = "{{instance}}"
"""The exporter, in a legend."""
_MM2SLO_RULES: Final = matching("rule_group", ".*mm2slo.*")
_NO_PROMETHEUS: Final = "Prometheus does not scrape itself, or has not loaded mm2slo's rules."
_NO_ALERTMANAGER: Final = "Prometheus does not scrape Alertmanager."


_panel: Final = partial(Panel, next_dashboard=DashboardUid.FLEET)
"""Flows suffer from a broken pipeline together."""


def build(exporter_job: str) -> Dashboard:
    """The monitoring itself: exporters scraped under *exporter_job*, rules and notifications."""
    job = equal("job", exporter_job)
    return Dashboard(
        uid=DashboardUid.PIPELINE,
        title="MirrorMaker 2 / Exporter and pipeline health",
        description="Would we know if something went wrong? Exporters, rules and notifications.",
        variables=(),
        rows=(
            Row("Are the flows monitored?", _collection(job)),
            Row("What does the exporter cost?", _cost(job)),
            Row("Are rules evaluated and notifications delivered?", _alerting()),
        ),
    )


def _collection(job: Matcher) -> tuple[Panel, ...]:
    """Exporters that are up, flows that are ready; last success and failures of stages."""
    ready = min_by(select(service_metrics.EXPORTER_FLOW_READY, job), "flow")
    last = max_by(
        select(service_metrics.EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, job), "cluster", "stage"
    )
    stage = "{{cluster}} {{stage}}"
    scraped = max_by(filter_by(select(UP, job), "== 1"))
    none = f'label_replace(0 * {scraped}, "reason", "none", "", "")'
    failures = sum_by(
        over("rate", service_metrics.EXPORTER_COLLECT_ERRORS_TOTAL, RATE_VARIABLE, job),
        *("cluster", "stage", "reason"),
    )
    malformed = max_by(
        over("increase", service_metrics.EXPORTER_MALFORMED_RECORDS_TOTAL, RANGE_VARIABLE, job),
        *("cluster", "kind", "reason"),
    )
    return (
        _panel(
            title="Exporter status",
            description="Are the exporters up? An exporter is up when its latest scrape succeeded.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries={REPLICA: max_by(select(UP, job), "instance")},
            states=UP_STATES,
            alert="MM2ExporterDown",
            width=12,
            height=5,
        ),
        _panel(
            title="Flows not ready",
            description="Which flows are not monitored yet? Flows whose internal topics have "
            "not been read to the end; until then only their state and SLIs are published.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries={"": sum_by(Vector(f"1 - {ready}", ready.labels))},
            thresholds=WARN_FROM_ONE,
            decimals=0,
            alert="MM2FlowMetricsAbsent",
            width=12,
            height=5,
        ),
        _panel(
            title="Time since last success",
            description="When did each stage last succeed? Time since then by cluster and "
            "stage, the ten longest. It grows when a cluster is unreachable or a permission is "
            "missing.",
            kind=Kind.BARS,
            unit=PanelUnit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries={stage: topk(10, seconds_since(last))},
            alert="MM2ClusterUnreachable",
            width=8,
        ),
        _panel(
            title="Collection failures by reason",
            description="Which stages fail, and why? Failures per second by cluster, stage and "
            "reason, or 0. A single failure may be a leader election.",
            kind=Kind.SERIES,
            unit=PanelUnit.REQUESTS,
            no_data=NO_EXPORTER_DATA,
            queries={f"{stage} {{{{reason}}}}": _positive_or(none, failures)},
            alert="MM2CollectionFailing",
            width=8,
        ),
        _panel(
            title="Malformed internal records",
            description="Could internal records not be decoded? Records of MirrorMaker 2's "
            "internal topics, by kind and reason, in the selected time range. Good is 0.",
            kind=Kind.BARS,
            unit=PanelUnit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries={"{{cluster}} {{kind}} {{reason}}": _positive_or(none, malformed)},
            thresholds=WARN_FROM_ONE,
            decimals=0,
            alert="MM2CollectionFailing",
            width=8,
        ),
    )


def _positive_or(none: str, found: Vector) -> Vector:
    """What of *found* is above 0, or else *none*."""
    return Vector(f"{found} > 0 or on () {none}", found.labels)


def _cost(job: Matcher) -> tuple[Panel, ...]:
    """Cost of the exporters that match *job*."""
    return (
        _gauges(
            "Cycle duration",
            "How long does a cycle take? Evaluation of all flows, and its rendering. Scrapes do "
            "not wait for it.",
            PanelUnit.SECONDS,
            (service_metrics.EXPORTER_CYCLE_DURATION_SECONDS, "cycle"),
            (service_metrics.EXPORTER_RENDER_DURATION_SECONDS, "rendering"),
            job=job,
        ),
        _gauges(
            "Exported series",
            "How many series are exported? Series in the latest snapshot of each exporter.",
            PanelUnit.COUNT,
            (service_metrics.EXPORTER_SERIES, "series"),
            job=job,
        ),
        _gauges(
            "Resident memory",
            "How much memory does the exporter use? Resident memory of each replica.",
            PanelUnit.BYTES,
            (service_metrics.PROCESS_RESIDENT_MEMORY_BYTES, "resident"),
            job=job,
        ),
        _panel(
            title="CPU usage",
            description="How much CPU does the exporter use? CPU seconds per second of each "
            "replica; 1 is one core.",
            kind=Kind.SERIES,
            unit=PanelUnit.SHARE,
            no_data=NO_EXPORTER_DATA,
            queries={
                REPLICA: max_by(
                    over("rate", service_metrics.PROCESS_CPU_SECONDS_TOTAL, RATE_VARIABLE, job),
                    "instance",
                )
            },
            alert="MM2ExporterDown",
            width=6,
        ),
    )


def _gauges(
    title: str, description: str, unit: PanelUnit, *metrics: tuple[Metric, str], job: Matcher
) -> Panel:
    return _panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_EXPORTER_DATA,
        queries={
            f"{REPLICA} {name}": max_by(select(metric, job), "instance") for metric, name in metrics
        },
        alert="MM2ExporterDown",
        width=6,
    )


def _alerting() -> tuple[Panel, ...]:
    """Evaluation of mm2slo's rules, and notifications."""
    slack, others = (
        sum_by(over("increase", NOTIFICATIONS_FAILED, RANGE_VARIABLE, *matchers), "integration")
        for matchers in ((matching("integration", "slack|webhook"),), ())
    )
    return (
        _panel(
            title="Rule evaluation failures",
            description="Do rules fail? Failed evaluations of mm2slo's rules, and evaluations "
            "missed because the previous one was still running, in the selected time range. "
            "Good is 0.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=_NO_PROMETHEUS,
            queries={
                legend: sum_by(over("increase", metric, RANGE_VARIABLE, _MM2SLO_RULES))
                for metric, legend in ((RULE_FAILURES, "failed"), (ITERATIONS_MISSED, "missed"))
            },
            thresholds=BAD_FROM_ONE,
            decimals=0,
            alert="MM2RuleEvaluationFailing",
        ),
        _panel(
            title="Failed notifications",
            description="Are notifications delivered? Notifications that Alertmanager gave up "
            "sending, to Slack, to webhooks and by other integrations that failed, in the selected "
            "time range. Each is lost. Good is 0.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=_NO_ALERTMANAGER,
            queries={"{{integration}}": Vector(f"{slack} or {others} > 0", slack.labels)},
            thresholds=BAD_FROM_ONE,
            decimals=0,
            alert="MM2SlackDeliveryFailing",
        ),
    )
