"""`/metrics`: metrics of audits and of this service."""

from __future__ import annotations

import os
import resource
import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Request, Response

from mm2slo_core.catalogue import process_metrics, report_metrics
from mm2slo_report.web.audit_metrics import audit_families
from mm2slo_report.web.report_service import service_of
from mm2slo_report.web.response_docs import describe_text_responses
from mm2slo_report.web.text_exposition import MEDIA, Family, exposition

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_report.web.report_service import ReportService

router = APIRouter(tags=["operations"])

_UNMATCHED: Final = "unmatched"
"""Route label of unknown paths, which would otherwise create unbounded series."""


class Requests:
    """Counts responses by route and status. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, route: str | None, status: int) -> None:
        with self._lock:
            self._counts[route or _UNMATCHED, str(status)] += 1

    def series(self) -> list[tuple[tuple[str, ...], float]]:
        """Label values and counts, sorted."""
        with self._lock:
            return [(key, count) for key, count in sorted(self._counts.items())]


@router.get(
    "/metrics",
    summary="Metrics",
    responses=describe_text_responses("text/plain", 'mm2_audit_runs{state="finished"} 4\n'),
)
def metrics(request: Request) -> Response:
    """Prometheus text format 0.0.4."""
    service = service_of(request)
    requests: Requests = request.app.state.requests
    families = (
        *audit_families(service.records.count_runs(), service.audits.figures_of(service.flows)),
        *_recorder_metrics(service),
        *_service_metrics(service, requests, request.app.state.started_at),
    )
    return Response(
        exposition(families), headers={"Content-Type": MEDIA, "Cache-Control": "no-store"}
    )


def _recorder_metrics(service: ReportService) -> Iterator[Family]:
    if service.recorder is None:
        return
    health = service.recorder.health
    until = health.recorded_until
    yield Family(
        report_metrics.REPORT_RECORDED_UNTIL_TIMESTAMP_SECONDS,
        [] if until is None else [((), until / 1000)],
    )
    yield Family(
        report_metrics.REPORT_SCRAPES_TOTAL,
        [((each.name,), each.scrapes) for each in health.targets],
    )
    yield Family(
        report_metrics.REPORT_SCRAPE_FAILURES_TOTAL,
        [((each.name,), each.failures) for each in health.targets],
    )


def _service_metrics(
    service: ReportService, requests: Requests, started_at: float
) -> Iterator[Family]:
    yield Family(report_metrics.REPORT_BUILD_INFO, [((service.settings.version,), 1)])
    yield Family(report_metrics.REPORT_REQUESTS_TOTAL, requests.series())
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield Family(process_metrics.PROCESS_CPU_SECONDS_TOTAL, [((), used.ru_utime + used.ru_stime)])
    yield Family(process_metrics.PROCESS_START_TIME_SECONDS, [((), started_at)])
    memory = _resident_bytes()
    yield Family(
        process_metrics.PROCESS_RESIDENT_MEMORY_BYTES, [] if memory is None else [((), memory)]
    )


def _resident_bytes() -> int | None:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
