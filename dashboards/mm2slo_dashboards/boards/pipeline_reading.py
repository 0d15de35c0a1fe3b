"""Whether the flows are seen and the clusters are read."""

from __future__ import annotations

from typing import Final

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.exporter import (
    EXPORTER_COLLECT_DURATION_SECONDS,
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_FLOW_READY,
    EXPORTER_GRANULARITY,
    EXPORTER_KAFKA_REQUESTS_TOTAL,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    EXPORTER_MALFORMED_RECORDS_TOTAL,
)
from mm2slo_core.catalogue.external import (
    UP,
)
from mm2slo_core.promql import Matcher, Vector, over, select
from mm2slo_dashboards.model import Kind, Panel, Query, Unit
from mm2slo_dashboards.selecting import (
    RANGE,
    RATE,
    least,
    quantile,
    since,
    top,
    total,
    where,
    worst,
)
from mm2slo_dashboards.states import NEUTRAL, NONE_IS_BEST
from mm2slo_dashboards.states import UP as UP_STATES

NO_EXPORTER: Final = "Prometheus scrapes no exporter, or under another job."
REPLICA: Final = "{{instance}}"
"""In a legend: which exporter."""


def seeing(job: Matcher) -> tuple[Panel, ...]:
    """Exporters that are up, flows that are ready, how fine their series are."""
    ready = least(select(EXPORTER_FLOW_READY, job), "flow")
    return (
        Panel(
            title="Are the exporters scraped?",
            description="Each exporter that Prometheus knows of: up when its newest scrape "
            "succeeded.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(
                Query(vector=worst(select(UP, job), "instance"), legend=REPLICA, instant=True),
            ),
            states=UP_STATES,
            leads=Identity.FLEET,
            alert="MM2ExporterDown",
            width=8,
            height=5,
        ),
        Panel(
            title="How many flows are not ready to be judged?",
            description="Flows whose internal topics have not been read to their end: until then "
            "only their state and indicators are published.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(Query(vector=total(Vector(f"1 - {ready}", ready.labels)), instant=True),),
            steps=NONE_IS_BEST,
            decimals=0,
            leads=Identity.FLEET,
            alert="MM2FlowMetricsAbsent",
            width=8,
            height=5,
        ),
        Panel(
            title="How fine are its series?",
            description="The granularity in force by the number of exporters that have it. "
            "Coarser than configured: the limit of series was met.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=where(total(select(EXPORTER_GRANULARITY, job), "granularity"), "> 0"),
                    legend="{{granularity}}",
                    instant=True,
                ),
            ),
            steps=NEUTRAL,
            decimals=0,
            leads=Identity.FLEET,
            alert="MM2CollectionFailing",
            width=8,
            height=5,
        ),
    )


def reading(job: Matcher) -> tuple[Panel, ...]:
    """The stages of collection: when they succeeded, why they fail, how long they take."""
    buckets = total(
        over("rate", EXPORTER_COLLECT_DURATION_SECONDS, RATE, job, part="bucket"),
        "cluster",
        "stage",
        "le",
    )
    last = worst(select(EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS, job), "cluster", "stage")
    stage = "{{cluster}} {{stage}}"
    return (
        Panel(
            title="When did each stage last succeed?",
            description="Time since each stage of collection last succeeded on each cluster, the "
            "ten longest. One that grows is a cluster or a permission that is gone.",
            kind=Kind.BARS,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=top(10, since(last)),
                    legend=stage,
                    instant=True,
                ),
            ),
            steps=NEUTRAL,
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2ClusterUnreachable",
            width=8,
        ),
        Panel(
            title="Which stages fail, and why?",
            description="Failures of collection stages a second, by reason. A single one is a "
            "leader's election.",
            kind=Kind.SERIES,
            unit=Unit.REQUESTS,
            no_data="No stage has failed since the exporter started.",
            queries=(
                Query(
                    vector=where(
                        total(
                            over("rate", EXPORTER_COLLECT_ERRORS_TOTAL, RATE, job),
                            "cluster",
                            "stage",
                            "reason",
                        ),
                        "> 0",
                    ),
                    legend=f"{stage} {{{{reason}}}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2CollectionFailing",
            fills="a cluster that does not answer",
            width=8,
        ),
        Panel(
            title="How long does each stage take?",
            description="99 of 100 of the newest runs of each stage on each cluster are faster; "
            "the ten slowest.",
            kind=Kind.BARS,
            unit=Unit.SECONDS,
            no_data=NO_EXPORTER,
            queries=(Query(vector=top(10, quantile(0.99, buckets)), legend=stage, instant=True),),
            steps=NEUTRAL,
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2CollectionFailing",
            width=8,
        ),
        Panel(
            title="Could internal records not be read?",
            description="Records of MirrorMaker 2's internal topics that could not be decoded, in "
            "the time that is shown, by kind and reason. Good is none.",
            kind=Kind.BARS,
            unit=Unit.COUNT,
            no_data="Every record could be decoded.",
            queries=(
                Query(
                    vector=where(
                        worst(
                            over("increase", EXPORTER_MALFORMED_RECORDS_TOTAL, RANGE, job),
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
            steps=NONE_IS_BEST,
            decimals=0,
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2CollectionFailing",
            fills="damaged internal records",
        ),
        Panel(
            title="What do we ask of the clusters?",
            description="Requests a second to each cluster, by kind; the ten most frequent.",
            kind=Kind.BARS,
            unit=Unit.REQUESTS,
            no_data=NO_EXPORTER,
            queries=(
                Query(
                    vector=top(
                        10,
                        total(
                            over("rate", EXPORTER_KAFKA_REQUESTS_TOTAL, RATE, job),
                            "cluster",
                            "api",
                        ),
                    ),
                    legend="{{cluster}} {{api}}",
                    instant=True,
                ),
            ),
            steps=NEUTRAL,
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2CollectionFailing",
        ),
    )
