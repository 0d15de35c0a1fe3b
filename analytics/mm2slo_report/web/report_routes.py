"""`/slo/report` and `/`: all objectives over one period in any format, and the status page."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Final, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import HTMLResponse

from mm2slo_core.objectives.error_budget import Status
from mm2slo_core.reporting import slo_report
from mm2slo_core.reporting.slo_report import EntryDetail, Report, costliest, may_have_incident
from mm2slo_core.user_errors import UserError
from mm2slo_report.rendering.page_views import AuditView, LatencyView
from mm2slo_report.rendering.report_models import ObjectiveIncident, ObjectiveReport
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web import request_checks
from mm2slo_report.web.http_responses import (
    ProblemError,
    ResponseBody,
    describe_responses,
    text_formats,
)
from mm2slo_report.web.objective_routes import At, Period
from mm2slo_report.web.report_service import ReportService, respond_cached, service_of
from mm2slo_report.web.request_checks import MEDIA_OF_FORMAT, ReportFormat, negotiate_format

report_router = APIRouter(tags=["reports"])


@report_router.get(
    "/slo/report",
    summary="Report",
    response_model=ObjectiveReport,
    responses=describe_responses(
        HTTPStatus.NOT_ACCEPTABLE, formats=text_formats("text/csv", "text/markdown", "text/html")
    ),
)
def report(
    request: Request,
    period: Period = None,
    at: At = None,
    flow: Annotated[list[str], Query(description="Only these flows.")] = [],  # noqa: B006 - FastAPI copies it
    requested_format: Annotated[
        ReportFormat | None,
        Query(alias="format", description="Output format; default: by `Accept`."),
    ] = None,
) -> Response:
    """All formats contain the same figures."""
    service = service_of(request)
    chosen_format = (
        negotiate_format(request.headers.get("accept"))
        if requested_format is None
        else requested_format
    )
    flows = request_checks.parse_flows(flow, service.flows)
    as_of = service.instant(at)
    service.check_period(period, as_of)

    def make() -> ResponseBody:
        found = service.report(as_of, period)
        if flows:
            chosen = tuple(each for each in found.entries if each.objective.flow in flows)
            found = replace(found, entries=chosen)
        return _render_report(service, found, chosen_format)

    return respond_cached(
        request,
        (as_of, period, flows, chosen_format),
        make,
        service.freshness(at, as_of),
        charged=True,
        vary="Accept",
    )


def _render_report(
    service: ReportService, found: slo_report.Report, format_: ReportFormat
) -> ResponseBody:
    # Imported on first use to keep the start fast.
    from mm2slo_report.rendering import report_exports, report_html

    references = service.settings.references
    costs = costliest(service.details(found, may_have_incident))
    if format_ is ReportFormat.JSON:
        incidents = [ObjectiveIncident.of(each) for each in costs]
        return ResponseBody.json(ObjectiveReport.of(found, references, incidents=incidents))
    if format_ is ReportFormat.CSV:
        name = f"slo-{found.window.name if found.window else 'report'}.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return ResponseBody.text(
            report_exports.as_csv(found, costs), MEDIA_OF_FORMAT[format_], headers
        )
    if format_ is ReportFormat.MARKDOWN:
        return ResponseBody.text(report_exports.as_markdown(found, costs), MEDIA_OF_FORMAT[format_])
    return ResponseBody.text(
        report_html.as_html(found, worst_details(service, found), costs, references=references),
        MEDIA_OF_FORMAT[format_],
        {"Content-Security-Policy": report_html.CONTENT_SECURITY_POLICY},
    )


_T = TypeVar("_T")
page_router = APIRouter(tags=["page"])
_HTML: Final = "text/html"

_MAX_DETAILED: Final = 4
"""Objectives with details; each one reads its minutes."""
_DETAILED_STATUSES: Final = frozenset({Status.BREACHED, Status.AT_RISK})
_SHOWN_AUDITS: Final = 5
_SHOWN_EVIDENCE: Final = 20


@page_router.get(
    "/", summary="Status page", response_class=HTMLResponse, responses=describe_responses()
)
def home(request: Request) -> Response:
    """Flows, objectives, spent budgets, failover readiness and audits; HTML without scripts."""
    service = service_of(request)
    as_of = service.instant(None)
    return respond_cached(
        request, (as_of,), lambda: _status_page(service, as_of), service.freshness(None, as_of)
    )


def worst_details(service: ReportService, report: Report) -> tuple[EntryDetail, ...]:
    """Details of the worst objectives; those that cannot be read are left out."""
    found = service.details(
        report, lambda each: each.status in _DETAILED_STATUSES and each.counts.bad > 0
    )
    return tuple(islice(found, _MAX_DETAILED))


def _status_page(service: ReportService, as_of: int) -> ResponseBody:
    # Imported on first use to keep the start fast.
    from mm2slo_report.rendering import report_html

    problems: list[str] = []
    report = service.report(as_of)
    show = service.shown
    audits, latencies = _try_section(lambda: _audit_views(service), problems, show) or ((), ())
    text = report_html.status_page_html(
        report,
        _try_section(service.flow_views, problems, show) or (),
        _try_section(service.group_views, problems, show) or (),
        audits,
        latencies=latencies,
        details=worst_details(service, report),
        references=service.settings.references,
        problems=tuple(dict.fromkeys(problems)),
    )
    return ResponseBody.text(
        text, _HTML, {"Content-Security-Policy": report_html.CONTENT_SECURITY_POLICY}
    )


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
    from mm2slo_report.rendering.page_views import audit_view, latency_view

    # A run may be needed several times: as a recent run and as the newest of its flows.
    units = cache(lambda run_id: service.records.units(run_id=run_id))
    views = []
    for run in service.records.runs(limit=_SHOWN_AUDITS):
        evidence = service.records.evidence(run_id=run.header.id, limit=_SHOWN_EVIDENCE)
        views.append(audit_view(run, units(run.header.id), evidence))
    newest = service.records.newest_finished(service.flows)
    found = (latency_view(run, flow, units(run.header.id)) for flow, run in newest.items())
    return views, [each for each in found if each is not None]
