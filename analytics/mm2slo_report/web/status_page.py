"""`/`: the status page, and the details shown on it and in reports."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.user_errors import UserError
from mm2slo_report.sources.sli_source import SliSourceError
from mm2slo_report.web.http_responses import Body
from mm2slo_report.web.problem_details import ProblemError
from mm2slo_report.web.report_service import respond_cached, service_of
from mm2slo_report.web.response_docs import describe_responses

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.reporting.slo_report import Detail, Report
    from mm2slo_report.rendering.page_views import AuditView, LatencyView
    from mm2slo_report.web.report_service import ReportService

_T = TypeVar("_T")

router = APIRouter(tags=["page"])

_HTML: Final = "text/html"
_MAX_DETAILED: Final = 4
"""Objectives with details; each one reads its minutes."""
_DETAILED_STATUSES: Final = frozenset({Status.BREACHED, Status.AT_RISK})
_AUDITS: Final = 5
_EVIDENCE: Final = 20


@router.get("/", summary="Status page", response_class=HTMLResponse, responses=describe_responses())
def home(request: Request) -> Response:
    """Flows, objectives, spent budgets, failover readiness and audits; HTML without scripts."""
    service = service_of(request)
    as_of = service.instant(None)
    return respond_cached(
        request, (as_of,), lambda: _page(service, as_of), service.freshness(None, as_of)
    )


def details(service: ReportService, report: Report) -> tuple[Detail, ...]:
    """Details of the worst objectives; those that cannot be read are left out."""
    over = None if report.window is None else report.window.name
    found: list[Detail] = []
    for entry in report.entries:
        if (
            entry.status in _DETAILED_STATUSES
            and entry.counts.bad > 0
            and len(found) < _MAX_DETAILED
        ):
            try:
                found.append(service.detail(entry.id, report.as_of, over))
            except SliSourceError:
                continue
    return tuple(found)


def _page(service: ReportService, as_of: int) -> Body:
    # Imported on first use to keep the start fast.
    from mm2slo_report import rendering

    problems: list[str] = []
    report = service.report(as_of)
    show = service.shown
    audits, latencies = _try_section(lambda: _audit_views(service), problems, show) or ((), ())
    text = rendering.page(
        report,
        _try_section(service.flow_views, problems, show) or (),
        _try_section(service.group_views, problems, show) or (),
        audits,
        latencies=latencies,
        details=details(service, report),
        references=service.settings.references,
        problems=tuple(dict.fromkeys(problems)),
    )
    return Body.text(text, _HTML, {"Content-Security-Policy": rendering.CONTENT_SECURITY_POLICY})


def _try_section(
    read: Callable[[], _T], problems: list[str], show: Callable[[str], str]
) -> _T | None:
    """The data of one section; on failure None, with the reason added to *problems*."""
    try:
        return read()
    except (ProblemError, SliSourceError, UserError) as problem:
        problems.append(show(str(problem)))
        return None


def _audit_views(service: ReportService) -> tuple[Sequence[AuditView], Sequence[LatencyView]]:
    from mm2slo_report.rendering.audit_views import audit_view, latency_view

    # A run may be needed several times: as a recent run and as the newest of its flows.
    units = cache(lambda run_id: service.records.units(run_id=run_id))
    views = []
    for run in service.records.runs(limit=_AUDITS):
        evidence = service.records.evidence(run_id=run.header.id, limit=_EVIDENCE)
        views.append(audit_view(run, units(run.header.id), evidence))
    newest = service.records.newest_finished(service.flows)
    found = (latency_view(run, flow, units(run.header.id)) for flow, run in newest.items())
    return views, [each for each in found if each is not None]
