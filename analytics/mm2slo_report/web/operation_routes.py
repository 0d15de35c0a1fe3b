"""`/healthz`, `/readyz` and `/metrics`: health and metrics of the service and of audits."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Final, Literal

import prometheus_client
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client.registry import Collector

from mm2slo_core.audit.unit_outcome import FAULTS, Verdict, percentile_name
from mm2slo_core.catalogue import service_metrics
from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.catalogue.service_metrics import Bound
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import MINUTE_MS, whole_minute
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_report.flow_audit_figures import AuditFigures, RateEstimate
from mm2slo_report.rendering.report_models import ResponseModel
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web.http_responses import ResponseBody, describe_responses
from mm2slo_report.web.report_service import ReportService, service_of
from mm2slo_store.audit_rows import RunState

logger = logging.getLogger(__name__)
_LONGEST_READINESS_SECONDS: Final = 2.0
health_router = APIRouter(tags=["operations"])


class ServiceHealth(ResponseModel):
    status: Literal["ok", "unavailable"] = "ok"
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


_READINESS: Final = describe_responses() | {
    HTTPStatus.SERVICE_UNAVAILABLE.value: {
        "description": "Not ready; the same document.",
        "model": ServiceHealth,
    }
}


@health_router.get(
    "/healthz", summary="Liveness", response_model=ServiceHealth, responses=describe_responses()
)
async def healthz() -> Response:
    """Always 200 while the process serves requests."""  # async: it waits for no thread
    return _respond(ServiceHealth(), HTTPStatus.OK)


@health_router.get(
    "/readyz",
    summary="Readiness",
    response_model=ServiceHealth,
    responses=_READINESS,
)
async def readyz(request: Request) -> Response:
    """503 while the store or the SLI source is unavailable; the log has the reasons.

    They are checked once for all concurrent requests, and at most every two seconds.

    `warnings` lists generated rules that Prometheus has not loaded; only alerts depend on them.
    """
    answer = await request.app.state.readiness.newest()
    tokens = service_of(request).settings.tokens
    if tokens is not None and not tokens.valid:
        problem = "report.tokens_file lists no valid token; see the log for the reason"
        answer = ServiceHealth(status="unavailable", problems=(problem, *answer.problems))
    is_ready = answer.status == "ok"
    return _respond(answer, HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)


def _check(service: ReportService) -> ServiceHealth:
    problems = _problems(service)
    if problems:
        return ServiceHealth(status="unavailable", problems=tuple(problems))
    return ServiceHealth(warnings=tuple(service.missing_rules()))


class SharedReadiness:
    """The newest readiness, which one thread checks for all callers."""

    def __init__(self, service: ReportService) -> None:
        self._service = service
        self._seconds = min(service.settings.cache_seconds, _LONGEST_READINESS_SECONDS)
        self._running: asyncio.Task[ServiceHealth] | None = None
        self._newest: tuple[float, ServiceHealth] | None = None

    async def newest(self) -> ServiceHealth:
        now = time.monotonic()
        if self._newest is not None and now - self._newest[0] < self._seconds:
            return self._newest[1]
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await asyncio.shield(self._running)  # a caller that leaves ends no other's wait

    async def _run(self) -> ServiceHealth:
        try:
            # Not a thread of those that serve requests, which may all be busy.
            found = await asyncio.to_thread(_check, self._service)
        finally:
            self._running = None
        self._newest = (time.monotonic(), found)
        return found


def _problems(service: ReportService) -> list[str]:
    # Anyone may read them, so they name no server and no file.
    found = []
    now = whole_minute(service.now)
    try:
        service.reporter.facts.exclusions(Span(now - MINUTE_MS, now))
    except UserError as error:
        logger.warning("not ready: %s", error)
        found.append("the results store is unavailable; see the log for the reason")
    try:
        service.reporter.source.indicators()
    except (SliSourceError, UserError) as error:
        logger.warning("not ready: %s", error)
        found.append("the source of history is unavailable; see the log for the reason")
    return found


def _respond(answer: ServiceHealth, status: HTTPStatus) -> Response:
    body = ResponseBody.json(answer)
    return Response(
        body.content,
        status_code=status,
        media_type=body.media,
        headers={"Cache-Control": "no-store"},
    )


metrics_router = APIRouter(tags=["operations"])

_UNMATCHED: Final = "unmatched"
"""Route label of unknown paths, which would otherwise create unbounded series."""

# They are not in the catalogue of metrics.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # it has no types


class ProcessMetrics:
    """Metrics of the process, and a counter of responses by route and status. Thread-safe."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self.callers = prometheus_client.CollectorRegistry()
        requests = service_metrics.REPORT_REQUESTS_TOTAL
        self._requests = prometheus_client.Counter(
            requests.name, requests.help, requests.labels, registry=self.callers
        )
        prometheus_client.ProcessCollector(registry=self.registry)
        prometheus_client.PlatformCollector(registry=self.registry)

    def count(self, route: str | None, status: int) -> None:
        self._requests.labels(route or _UNMATCHED, str(status)).inc()


class ServiceMetrics(Collector):
    """The metrics of audits and of the recorder, as *service* sees them."""

    def __init__(self, service: ReportService) -> None:
        self._service = service

    def describe(self) -> tuple[prometheus_client.Metric, ...]:
        """Nothing: names need not be reserved, and collecting reads the store."""
        return ()

    def collect(self) -> Iterator[prometheus_client.Metric]:
        service = self._service
        yield from audit_families(
            service.records.count_runs(), service.audits.figures_of(service.flows)
        )
        if service.recorder is not None and not service.is_scoped:
            health = service.recorder.health
            if health.recorded_until is not None:
                yield metric_family(
                    service_metrics.REPORT_RECORDED_UNTIL_TIMESTAMP_SECONDS,
                    [((), health.recorded_until / 1000)],
                )
            yield metric_family(
                service_metrics.REPORT_SCRAPES_TOTAL,
                [((each.name,), each.scrapes) for each in health.targets],
            )
            yield metric_family(
                service_metrics.REPORT_SCRAPE_FAILURES_TOTAL,
                [((each.name,), each.failures) for each in health.targets],
            )
        yield metric_family(service_metrics.REPORT_BUILD_INFO, [((service.settings.version,), 1)])


@metrics_router.get(
    "/metrics",
    summary="Metrics",
    response_class=PlainTextResponse,
    responses=describe_responses(),
)
def metrics(request: Request) -> Response:
    """Prometheus text format 0.0.4."""
    of_process: ProcessMetrics = request.app.state.metrics
    of_service = prometheus_client.CollectorRegistry()
    of_service.register(ServiceMetrics(service := service_of(request)))
    # A token of some flows sees neither requests of others nor addresses of exporters.
    hidden = () if service.is_scoped else (of_process.callers,)
    shown = (of_service, of_process.registry, *hidden)
    return Response(
        b"".join(map(prometheus_client.generate_latest, shown)),
        headers={
            "Content-Type": prometheus_client.exposition.CONTENT_TYPE_PLAIN_0_0_4,
            "Cache-Control": "no-store",
        },
    )


Figures = Mapping[Flow, AuditFigures]
Labelled = Iterable[tuple[tuple[str, ...], float | None]]
"""Labels in addition to those of the flow, and the value; None if unknown."""


def audit_families(
    runs: Mapping[RunState, int], newest: Figures
) -> Iterator[prometheus_client.Metric]:
    """Runs by state, and each flow's *newest* finished audit."""
    yield metric_family(
        service_metrics.AUDIT_RUNS, [((state.value,), runs[state]) for state in RunState]
    )
    for metric, figures in _FIGURES:
        series = [
            ((flow.label, flow.source, flow.target, *labels), value)
            for flow, found in newest.items()
            for labels, value in figures(found)
            if value is not None
        ]
        if series:
            yield metric_family(metric, series)


def _single(value: float | None) -> Labelled:
    return [((), value)]


def _seconds(epoch_ms: int | None) -> Labelled:
    return _single(None if epoch_ms is None else epoch_ms / 1000)


def _by_verdict(counts: Mapping[Verdict, int]) -> Labelled:
    return [((verdict.value,), count) for verdict, count in counts.items()]


def _rates(
    known: Mapping[Verdict, RateEstimate] | Mapping[service_metrics.KeyProperty, RateEstimate],
) -> Labelled:
    for of, (estimate, interval) in known.items():
        yield (of.value, Bound.ESTIMATE), estimate
        if interval is not None:
            yield (of.value, Bound.LOWER), interval.lower
            yield (of.value, Bound.UPPER), interval.upper


def _latency(figures: AuditFigures) -> Labelled:
    for measure, percentiles in figures.latency.items():
        for q, (lower, upper) in percentiles.items():
            yield (measure.value, percentile_name(q), Bound.LOWER), lower
            yield (measure.value, percentile_name(q), Bound.UPPER), upper


_FIGURES: Final[tuple[tuple[Metric, Callable[[AuditFigures], Labelled]], ...]] = (
    (
        service_metrics.AUDIT_LAST_RUN_TIMESTAMP_SECONDS,
        lambda each: _seconds(each.run.finished_at),
    ),
    (
        service_metrics.AUDIT_WINDOW_END_TIMESTAMP_SECONDS,
        lambda each: _seconds(each.run.header.window.end),
    ),
    (
        service_metrics.AUDIT_COMPLETE_UP_TO_TIMESTAMP_SECONDS,
        lambda each: _seconds(each.run.complete_up_to),
    ),
    (service_metrics.AUDIT_RECORDS, lambda each: _by_verdict(each.counts)),
    (
        service_metrics.AUDIT_FAULTS_RECORDS,
        lambda each: _single(sum(each.counts[of] for of in FAULTS)),
    ),
    (service_metrics.AUDIT_UNAUDITED_TOPICS, lambda each: _single(each.unaudited)),
    (service_metrics.AUDIT_SAMPLED_RATIO, lambda each: _single(each.run.header.sample_rate)),
    (service_metrics.AUDIT_RECORD_SIZE_BYTES, lambda each: _single(each.record_size)),
    (service_metrics.AUDIT_RECORDS_RATIO, lambda each: _rates(each.records)),
    (service_metrics.AUDIT_KEYS_RATIO, lambda each: _rates(each.keys)),
    (service_metrics.AUDIT_LATENCY_SECONDS, _latency),
    (service_metrics.AUDIT_EVIDENCE_RECORDS, lambda each: _by_verdict(each.evidence)),
    (service_metrics.AUDIT_UNEVIDENCED_RECORDS, lambda each: _by_verdict(each.unevidenced)),
)
"""Each metric of a flow with its figures, in the order of the catalogue."""


def metric_family(
    metric: Metric, series: Iterable[tuple[tuple[str, ...], float]]
) -> prometheus_client.Metric:
    """*series* are label values in the declared order, and the value.

    Raises ValueError for missing labels.
    """
    found = prometheus_client.Metric(metric.family_name, metric.help, metric.type.value)
    for labels, value in series:
        found.add_sample(metric.name, dict(zip(metric.labels, labels, strict=True)), value)
    return found
