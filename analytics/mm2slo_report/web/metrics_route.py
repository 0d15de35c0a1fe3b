"""`/metrics`: metrics of audits and of this service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import prometheus_client
from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse
from prometheus_client.registry import Collector

from mm2slo_core.catalogue import report_metrics
from mm2slo_report.web.audit_metrics import audit_families
from mm2slo_report.web.metric_family import metric_family
from mm2slo_report.web.report_service import service_of
from mm2slo_report.web.response_docs import describe_responses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_report.web.report_service import ReportService

router = APIRouter(tags=["operations"])

_UNMATCHED: Final = "unmatched"
"""Route label of unknown paths, which would otherwise create unbounded series."""
# They are not in the catalogue of metrics.
prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call] # it has no types


class ProcessMetrics:
    """Metrics of the process, and a counter of responses by route and status. Thread-safe."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self.callers = prometheus_client.CollectorRegistry()
        requests = report_metrics.REPORT_REQUESTS_TOTAL
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
                    report_metrics.REPORT_RECORDED_UNTIL_TIMESTAMP_SECONDS,
                    [((), health.recorded_until / 1000)],
                )
            yield metric_family(
                report_metrics.REPORT_SCRAPES_TOTAL,
                [((each.name,), each.scrapes) for each in health.targets],
            )
            yield metric_family(
                report_metrics.REPORT_SCRAPE_FAILURES_TOTAL,
                [((each.name,), each.failures) for each in health.targets],
            )
        yield metric_family(report_metrics.REPORT_BUILD_INFO, [((service.settings.version,), 1)])


@router.get(
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
