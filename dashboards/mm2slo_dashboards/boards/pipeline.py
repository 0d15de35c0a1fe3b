"""Exporter and pipeline health: whether we would know if something went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core.boards import Board as Identity
from mm2slo_core.catalogue.exporter import (
    EXPORTER_COLLECT_DURATION_SECONDS,
    EXPORTER_COLLECT_ERRORS_TOTAL,
    EXPORTER_CYCLE_DURATION_SECONDS,
    EXPORTER_FLOW_READY,
    EXPORTER_GRANULARITY,
    EXPORTER_KAFKA_REQUESTS_TOTAL,
    EXPORTER_LAST_SUCCESS_TIMESTAMP_SECONDS,
    EXPORTER_MALFORMED_RECORDS_TOTAL,
    EXPORTER_RENDER_DURATION_SECONDS,
    EXPORTER_SERIES,
    EXPORTER_TIMELINE_BYTES_TOTAL,
    EXPORTER_TIMELINE_WRITER,
)
from mm2slo_core.catalogue.external import (
    GROUP_DURATION,
    GROUP_INTERVAL,
    ITERATIONS_MISSED,
    NOTIFICATIONS,
    NOTIFICATIONS_FAILED,
    RULE_FAILURES,
    UP,
)
from mm2slo_core.catalogue.process import (
    PROCESS_CPU_SECONDS_TOTAL,
    PROCESS_RESIDENT_MEMORY_BYTES,
)
from mm2slo_core.catalogue.reported import REPORT_SCRAPE_FAILURES_TOTAL, REPORT_SCRAPES_TOTAL
from mm2slo_core.promql import Matcher, Vector, equal, matching, on, over, select
from mm2slo_dashboards.model import Board, Kind, Panel, Query, Row, Unit
from mm2slo_dashboards.selecting import RANGE, RATE, least, quantile, top, total, where, worst
from mm2slo_dashboards.states import NEUTRAL, NONE_IS_BEST, NONE_IS_GOOD
from mm2slo_dashboards.states import UP as UP_STATES

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Metric

_OURS: Final = matching("rule_group", ".*mm2slo.*")
_NO_EXPORTER: Final = "Prometheus scrapes no exporter, or under another job."
_NO_PROMETHEUS: Final = "Prometheus does not scrape itself."
_NO_ALERTMANAGER: Final = "Prometheus does not scrape Alertmanager."
_REPLICA: Final = "{{instance}}"


def board(exporter_job: str) -> Board:
    """Exporters, rules and messages."""
    job = equal("job", exporter_job)
    return Board(
        identity=Identity.PIPELINE,
        title="MirrorMaker 2 / Exporter and pipeline health",
        description="Would we know if something went wrong? Exporters, rules and messages.",
        variables=(),
        rows=(
            Row("Do we see the flows?", _seeing(job)),
            Row("Are the clusters read?", _reading(job)),
            Row("What does the exporter cost?", _cost(job)),
            Row("Are rules evaluated, and messages delivered?", _alerting()),
            Row("Does the report service record?", _report()),
        ),
    )


def _seeing(job: Matcher) -> tuple[Panel, ...]:
    ready = least(select(EXPORTER_FLOW_READY, job), "flow")
    return (
        Panel(
            title="Are the exporters scraped?",
            description="Each exporter that Prometheus knows of: up when its newest scrape "
            "succeeded.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_EXPORTER,
            queries=(
                Query(vector=worst(select(UP, job), "instance"), legend=_REPLICA, instant=True),
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
            no_data=_NO_EXPORTER,
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
            no_data=_NO_EXPORTER,
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


def _reading(job: Matcher) -> tuple[Panel, ...]:
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
            description="Time since each stage of collection last succeeded on each cluster. A "
            "line that climbs is a cluster or a permission that is gone.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=_NO_EXPORTER,
            queries=(Query(vector=Vector(f"time() - {last}", last.labels), legend=stage),),
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
            unit=Unit.RATE,
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
            description="99 of 100 runs of each stage on each cluster are faster.",
            kind=Kind.SERIES,
            unit=Unit.SECONDS,
            no_data=_NO_EXPORTER,
            queries=(Query(vector=quantile(0.99, buckets), legend=stage),),
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
            description="Requests a second to each cluster, by kind.",
            kind=Kind.SERIES,
            unit=Unit.REQUESTS,
            no_data=_NO_EXPORTER,
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
                ),
            ),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2CollectionFailing",
        ),
    )


def _cost(job: Matcher) -> tuple[Panel, ...]:
    return (
        _gauges(
            "How long does a cycle take?",
            "Evaluation of all flows, and the rendering within it. A scrape never waits for them.",
            Unit.SECONDS,
            (EXPORTER_CYCLE_DURATION_SECONDS, "cycle"),
            (EXPORTER_RENDER_DURATION_SECONDS, "rendering"),
            job=job,
        ),
        _gauges(
            "How many series are there?",
            "Series in the newest snapshot of each exporter.",
            Unit.COUNT,
            (EXPORTER_SERIES, "series"),
            job=job,
        ),
        _gauges(
            "How much memory does it take?",
            "Resident memory of each exporter.",
            Unit.BYTES,
            (PROCESS_RESIDENT_MEMORY_BYTES, "resident"),
            job=job,
        ),
        Panel(
            title="How much processor time does it take?",
            description="Seconds of processor time a second of each exporter: 1 is one core.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=_NO_EXPORTER,
            queries=(
                Query(
                    vector=worst(over("rate", PROCESS_CPU_SECONDS_TOTAL, RATE, job), "instance"),
                    legend=_REPLICA,
                ),
            ),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2ExporterDown",
            width=8,
        ),
        Panel(
            title="Who writes the timeline?",
            description="Exporters that write each flow's watermark timeline. One is right; none "
            "while a writer is elected, or where nothing may be written.",
            kind=Kind.SERIES,
            unit=Unit.COUNT,
            no_data=_NO_EXPORTER,
            queries=(
                Query(
                    vector=total(select(EXPORTER_TIMELINE_WRITER, job), "flow"), legend="{{flow}}"
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            width=8,
        ),
        Panel(
            title="What does the timeline cost?",
            description="Bytes a second written to the watermark timelines.",
            kind=Kind.SERIES,
            unit=Unit.BYTE_RATE,
            no_data=_NO_EXPORTER,
            queries=(
                Query(
                    vector=top(
                        10, total(over("rate", EXPORTER_TIMELINE_BYTES_TOTAL, RATE, job), "flow")
                    ),
                    legend="{{flow}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLOW,
            width=8,
        ),
    )


def _alerting() -> tuple[Panel, ...]:
    took = worst(select(GROUP_DURATION, _OURS), "rule_group")
    every = worst(select(GROUP_INTERVAL, _OURS), "rule_group")
    share = Vector(f"{took} / {on(('rule_group',), took, every)} {every}", ("rule_group",))
    return (
        Panel(
            title="Do rules fail?",
            description="Evaluations of our rules that failed, and that were left out because the "
            "one before was still under way, in the time that is shown. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_PROMETHEUS,
            queries=tuple(
                Query(
                    vector=total(over("increase", metric, RANGE, _OURS)), legend=word, instant=True
                )
                for metric, word in ((RULE_FAILURES, "failed"), (ITERATIONS_MISSED, "left out"))
            ),
            steps=NONE_IS_GOOD,
            decimals=0,
            leads=Identity.FLEET,
            alert="MM2RuleEvaluationFailing",
            width=6,
        ),
        Panel(
            title="Do rules keep up?",
            description="Share of its interval that each group of our rules takes. At 100 % "
            "evaluations are left out, and alerts are late.",
            kind=Kind.SERIES,
            unit=Unit.SHARE,
            no_data=_NO_PROMETHEUS,
            queries=(Query(vector=top(10, share), legend="{{rule_group}}"),),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2RuleEvaluationFailing",
            width=6,
        ),
        Panel(
            title="Do messages reach Slack?",
            description="Messages that Alertmanager gave up sending in the time that is shown, by "
            "receiver's kind. Each of them is lost. Good is 0.",
            kind=Kind.STAT,
            unit=Unit.COUNT,
            no_data=_NO_ALERTMANAGER,
            queries=(
                Query(
                    vector=total(
                        over(
                            "increase",
                            NOTIFICATIONS_FAILED,
                            RANGE,
                            matching("integration", "slack|webhook"),
                        ),
                        "integration",
                    ),
                    legend="{{integration}}",
                    instant=True,
                ),
            ),
            steps=NONE_IS_GOOD,
            decimals=0,
            leads=Identity.FLEET,
            alert="MM2SlackDeliveryFailing",
            width=6,
        ),
        Panel(
            title="When were messages sent?",
            description="Messages a second that Alertmanager tried to send, by receiver's kind. "
            "The steady watchdog alone keeps it above 0 where it is routed.",
            kind=Kind.SERIES,
            unit=Unit.REQUESTS,
            no_data=_NO_ALERTMANAGER,
            queries=(
                Query(
                    vector=total(
                        over("rate", NOTIFICATIONS, RATE, matching("integration", "slack|webhook")),
                        "integration",
                    ),
                    legend="{{integration}}",
                ),
            ),
            least=0.0,
            leads=Identity.FLEET,
            alert="MM2Watchdog",
            width=6,
        ),
    )


def _report() -> tuple[Panel, ...]:
    return (
        Panel(
            title="Does its recorder reach the exporters?",
            description="Scrapes of the embedded recorder a second, and those that failed. "
            "Nothing to see where history comes from Prometheus.",
            kind=Kind.SERIES,
            unit=Unit.REQUESTS,
            no_data="History comes from Prometheus, or `mm2slo report serve` is not scraped.",
            queries=(
                Query(
                    vector=total(over("rate", REPORT_SCRAPES_TOTAL, RATE), "exporter"),
                    legend="{{exporter}}",
                ),
                Query(
                    vector=total(over("rate", REPORT_SCRAPE_FAILURES_TOTAL, RATE), "exporter"),
                    legend="{{exporter}} failed",
                ),
            ),
            least=0.0,
            leads=Identity.AUDIT,
            fills="a report service with a recorder",
            width=24,
            height=6,
        ),
    )


def _gauges(
    title: str,
    description: str,
    unit: Unit,
    *figures: tuple[Metric, str],
    job: Matcher,
) -> Panel:
    return Panel(
        title=title,
        description=description,
        kind=Kind.SERIES,
        unit=unit,
        no_data=_NO_EXPORTER,
        queries=tuple(
            Query(vector=worst(select(metric, job), "instance"), legend=f"{_REPLICA} {word}")
            for metric, word in figures
        ),
        least=0.0,
        leads=Identity.FLEET,
        alert="MM2ExporterDown",
        width=8,
    )
