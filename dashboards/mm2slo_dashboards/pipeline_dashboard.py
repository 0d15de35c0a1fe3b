"""Pipeline dashboard: the rows with collection, rule evaluation and delivery, and cost."""

from typing import Final

from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.catalogue.prometheus_series import (
    ITERATIONS_MISSED,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
    UP,
)
from mm2slo_core.catalogue.promql import Matcher, Vector, matching, over, select
from mm2slo_core.catalogue.service_metrics import (
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_CYCLE_DURATION_SECONDS,
    EXPORTER_FLOW_READY,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    EXPORTER_MALFORMED_RECORDS_TOTAL,
    EXPORTER_RENDER_DURATION_SECONDS,
    EXPORTER_SERIES,
    PROCESS_CPU_SECONDS_TOTAL,
    PROCESS_RESIDENT_MEMORY_BYTES,
)
from mm2slo_core.link_targets import DashboardUid
from mm2slo_dashboards.dashboard_model import (
    BAD_FROM_ONE,
    NEUTRAL,
    UP_STATES,
    WARN_FROM_ONE,
    Kind,
    Panel,
    PanelUnit,
    Query,
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


def collection_panels(job: Matcher) -> tuple[Panel, ...]:
    """Exporters that are up, flows that are ready; last success and failures of stages."""
    ready = min_by(select(EXPORTER_FLOW_READY, job), "flow")
    last = max_by(select(EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, job), "cluster", "stage")
    stage = "{{cluster}} {{stage}}"
    return (
        Panel(
            title="Exporter status",
            description="Are the exporters up? An exporter is up when its latest scrape succeeded.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(vector=max_by(select(UP, job), "instance"), legend=REPLICA, instant=True),
            ),
            states=UP_STATES,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2ExporterDown",
            width=12,
            height=5,
        ),
        Panel(
            title="Flows not ready",
            description="Which flows are not monitored yet? Flows whose internal topics have "
            "not been read to the end; until then only their state and SLIs are published.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(Query(vector=sum_by(Vector(f"1 - {ready}", ready.labels)), instant=True),),
            thresholds=WARN_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2FlowMetricsAbsent",
            width=12,
            height=5,
        ),
        Panel(
            title="Time since last success",
            description="When did each stage last succeed? Time since then by cluster and "
            "stage, the ten longest. It grows when a cluster is unreachable or a permission is "
            "missing.",
            kind=Kind.BARS,
            unit=PanelUnit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries=(Query(vector=topk(10, seconds_since(last)), legend=stage, instant=True),),
            thresholds=NEUTRAL,
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2ClusterUnreachable",
            width=8,
        ),
        Panel(
            title="Collection failures by reason",
            description="Which stages fail, and why? Failures per second by cluster, stage and "
            "reason. A single failure may be a leader election.",
            kind=Kind.SERIES,
            unit=PanelUnit.REQUESTS,
            no_data="No stage has failed since the exporter started.",
            queries=(
                Query(
                    vector=filter_by(
                        sum_by(
                            over("rate", EXPORTER_COLLECT_ERRORS_TOTAL, RATE_VARIABLE, job),
                            "cluster",
                            "stage",
                            "reason",
                        ),
                        "> 0",
                    ),
                    legend=f"{stage} {{{{reason}}}}",
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2CollectionFailing",
            fills_on="an unreachable cluster",
            width=8,
        ),
        Panel(
            title="Malformed internal records",
            description="Could internal records not be decoded? Records of MirrorMaker 2's "
            "internal topics, by kind and reason, in the selected time range. Good is none.",
            kind=Kind.BARS,
            unit=PanelUnit.COUNT,
            no_data="Every record was decoded.",
            queries=(
                Query(
                    vector=filter_by(
                        max_by(
                            over("increase", EXPORTER_MALFORMED_RECORDS_TOTAL, RANGE_VARIABLE, job),
                            "cluster",
                            "kind",
                            "reason",
                        ),
                        "> 0",
                    ),
                    legend="{{cluster}} {{kind}} {{reason}}",
                    instant=True,
                ),
            ),
            thresholds=WARN_FROM_ONE,
            decimals=0,
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2CollectionFailing",
            fills_on="damaged internal records",
            width=8,
        ),
    )


_MM2SLO_RULES: Final = matching("rule_group", ".*mm2slo.*")
_NO_PROMETHEUS: Final = "Prometheus does not scrape itself."
_NO_ALERTMANAGER: Final = "Prometheus does not scrape Alertmanager."


def alerting_panels() -> tuple[Panel, ...]:
    """Evaluation of mm2slo's rules, and notifications."""
    return (
        Panel(
            title="Rule evaluation failures",
            description="Do rules fail? Failed evaluations of mm2slo's rules, and evaluations "
            "missed because the previous one was still running, in the selected time range. "
            "Good is 0.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=_NO_PROMETHEUS,
            queries=tuple(
                Query(
                    vector=sum_by(over("increase", metric, RANGE_VARIABLE, _MM2SLO_RULES)),
                    legend=legend,
                    instant=True,
                )
                for metric, legend in ((RULE_FAILURES, "failed"), (ITERATIONS_MISSED, "missed"))
            ),
            thresholds=BAD_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2RuleEvaluationFailing",
        ),
        Panel(
            title="Failed notifications",
            description="Do notifications reach Slack? Notifications that Alertmanager gave up "
            "sending, by integration, in the selected time range. Each is lost. Good is 0.",
            kind=Kind.STAT,
            unit=PanelUnit.COUNT,
            no_data=_NO_ALERTMANAGER,
            queries=(
                Query(
                    vector=sum_by(
                        over(
                            "increase",
                            NOTIFICATIONS_FAILED,
                            RANGE_VARIABLE,
                            matching("integration", "slack|webhook"),
                        ),
                        "integration",
                    ),
                    legend="{{integration}}",
                    instant=True,
                ),
            ),
            thresholds=BAD_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2SlackDeliveryFailing",
        ),
    )


def cost_panels(job: Matcher) -> tuple[Panel, ...]:
    """Cost of the exporters that match *job*."""
    return (
        _gauges(
            "Cycle duration",
            "How long does a cycle take? Evaluation of all flows, and its rendering. Scrapes do "
            "not wait for it.",
            PanelUnit.SECONDS,
            (EXPORTER_CYCLE_DURATION_SECONDS, "cycle"),
            (EXPORTER_RENDER_DURATION_SECONDS, "rendering"),
            job=job,
        ),
        _gauges(
            "Exported series",
            "How many series are exported? Series in the latest snapshot of each exporter.",
            PanelUnit.COUNT,
            (EXPORTER_SERIES, "series"),
            job=job,
        ),
        _gauges(
            "Resident memory",
            "How much memory does the exporter use? Resident memory of each replica.",
            PanelUnit.BYTES,
            (PROCESS_RESIDENT_MEMORY_BYTES, "resident"),
            job=job,
        ),
        Panel(
            title="CPU usage",
            description="How much CPU does the exporter use? CPU seconds per second of each "
            "replica; 1 is one core.",
            kind=Kind.SERIES,
            unit=PanelUnit.SHARE,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=max_by(
                        over("rate", PROCESS_CPU_SECONDS_TOTAL, RATE_VARIABLE, job), "instance"
                    ),
                    legend=REPLICA,
                ),
            ),
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2ExporterDown",
            width=6,
        ),
    )


def _gauges(
    title: str,
    description: str,
    unit: PanelUnit,
    *metrics: tuple[Metric, str],
    job: Matcher,
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=unit,
        no_data=NO_EXPORTER_DATA,
        queries=tuple(
            Query(vector=max_by(select(metric, job), "instance"), legend=f"{REPLICA} {name}")
            for metric, name in metrics
        ),
        minimum=0.0,
        next_dashboard=DashboardUid.FLEET,
        alert="MM2ExporterDown",
        width=6,
    )
