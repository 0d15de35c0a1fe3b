"""Panels with exporter status and collection."""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue.exporter_metrics import (
    EXPORTER_COLLECT_DURATION_SECONDS,
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_FLOW_READY,
    EXPORTER_GRANULARITY,
    EXPORTER_KAFKA_REQUESTS_TOTAL,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    EXPORTER_MALFORMED_RECORDS_TOTAL,
)
from mm2slo_core.catalogue.external_metrics import (
    UP,
)
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import Matcher, Vector, over, select
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Unit
from mm2slo_dashboards.panel_queries import (
    RANGE_VARIABLE,
    RATE_VARIABLE,
    filter_by,
    histogram_quantile,
    max_by,
    min_by,
    seconds_since,
    sum_by,
    topk,
)
from mm2slo_dashboards.state_mappings import NEUTRAL, UP_STATES, WARN_FROM_ONE

NO_EXPORTER_DATA: Final = "Prometheus scrapes no exporter, or under another job."
REPLICA: Final = "{{instance}}"
"""The exporter, in a legend."""


def status_panels(job: Matcher) -> tuple[Panel, ...]:
    """Exporters that are up, flows that are ready, granularity in use."""
    ready = min_by(select(EXPORTER_FLOW_READY, job), "flow")
    return (
        Panel(
            title="Exporter status",
            description="Are the exporters up? An exporter is up when its latest scrape succeeded.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(vector=max_by(select(UP, job), "instance"), legend=REPLICA, instant=True),
            ),
            states=UP_STATES,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2ExporterDown",
            width=8,
            height=5,
        ),
        Panel(
            title="Flows not ready",
            description="Which flows are not monitored yet? Flows whose internal topics have "
            "not been read to the end; until then only their state and SLIs are published.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(Query(vector=sum_by(Vector(f"1 - {ready}", ready.labels)), instant=True),),
            thresholds=WARN_FROM_ONE,
            decimals=0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2FlowMetricsAbsent",
            width=8,
            height=5,
        ),
        Panel(
            title="Granularity in use",
            description="How fine are the series? Exporters by granularity in use. Coarser than "
            "configured: the series limit was reached.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=filter_by(
                        sum_by(select(EXPORTER_GRANULARITY, job), "granularity"), "> 0"
                    ),
                    legend="{{granularity}}",
                    instant=True,
                ),
            ),
            thresholds=NEUTRAL,
            decimals=0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2CollectionFailing",
            width=8,
            height=5,
        ),
    )


def collection_panels(job: Matcher) -> tuple[Panel, ...]:
    """Stages of collection: last success, failures, duration; malformed records; requests."""
    buckets = sum_by(
        over("rate", EXPORTER_COLLECT_DURATION_SECONDS, RATE_VARIABLE, job, part="bucket"),
        "cluster",
        "stage",
        "le",
    )
    last = max_by(select(EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, job), "cluster", "stage")
    stage = "{{cluster}} {{stage}}"
    return (
        Panel(
            title="Time since last success",
            description="When did each stage last succeed? Time since then by cluster and "
            "stage, the ten longest. It grows when a cluster is unreachable or a permission is "
            "missing.",
            kind=Kind.BARS,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=topk(10, seconds_since(last)),
                    legend=stage,
                    instant=True,
                ),
            ),
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
            unit=Unit.REQUESTS,
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
            title="Stage duration p99",
            description="How long does each stage take? p99 by cluster and stage, the ten slowest.",
            kind=Kind.BARS,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=topk(10, histogram_quantile(0.99, buckets)), legend=stage, instant=True
                ),
            ),
            thresholds=NEUTRAL,
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2CollectionFailing",
            width=8,
        ),
        Panel(
            title="Malformed internal records",
            description="Could internal records not be decoded? Records of MirrorMaker 2's "
            "internal topics, by kind and reason, in the selected time range. Good is none.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
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
        ),
        Panel(
            title="Kafka requests",
            description="What does the exporter request from the clusters? Requests per second by "
            "cluster and API, the ten most frequent.",
            kind=Kind.BARS,
            unit=Unit.REQUESTS,
            no_data=NO_EXPORTER_DATA,
            queries=(
                Query(
                    vector=topk(
                        10,
                        sum_by(
                            over("rate", EXPORTER_KAFKA_REQUESTS_TOTAL, RATE_VARIABLE, job),
                            "cluster",
                            "api",
                        ),
                    ),
                    legend="{{cluster}} {{api}}",
                    instant=True,
                ),
            ),
            thresholds=NEUTRAL,
            minimum=0.0,
            next_dashboard=DashboardUid.FLEET,
            alert="MM2CollectionFailing",
        ),
    )
