"""Panels with exporter status and collection."""

from __future__ import annotations

from typing import Final

from mm2slo_core.catalogue.exporter_metrics import (
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_FLOW_READY,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    EXPORTER_MALFORMED_RECORDS_TOTAL,
)
from mm2slo_core.catalogue.external_metrics import UP
from mm2slo_core.dashboard_uids import DashboardUid
from mm2slo_core.promql import Matcher, Vector, over, select
from mm2slo_dashboards.dashboard_model import Kind, Panel, Query, Unit
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
from mm2slo_dashboards.state_mappings import NEUTRAL, UP_STATES, WARN_FROM_ONE

NO_EXPORTER_DATA: Final = "Prometheus scrapes no exporter, or under another job."
REPLICA: Final = "{{instance}}"
"""The exporter, in a legend."""


def panels(job: Matcher) -> tuple[Panel, ...]:
    """Exporters that are up, flows that are ready; last success and failures of stages."""
    ready = min_by(select(EXPORTER_FLOW_READY, job), "flow")
    last = max_by(select(EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, job), "cluster", "stage")
    stage = "{{cluster}} {{stage}}"
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
            width=12,
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
            width=12,
            height=5,
        ),
        Panel(
            title="Time since last success",
            description="When did each stage last succeed? Time since then by cluster and "
            "stage, the ten longest. It grows when a cluster is unreachable or a permission is "
            "missing.",
            kind=Kind.BARS,
            unit=Unit.SECONDS,
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
            width=8,
        ),
    )
