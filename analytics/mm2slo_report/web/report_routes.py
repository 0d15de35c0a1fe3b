"""`/slo/report`: all objectives over one period, in the requested format."""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from mm2slo_core.reporting.incidents import costliest
from mm2slo_report.rendering.report_models import ObjectiveIncident, Report
from mm2slo_report.web import query_parameters
from mm2slo_report.web.content_negotiation import MEDIA, ReportFormat, negotiate_format
from mm2slo_report.web.http_responses import Body
from mm2slo_report.web.objective_routes import At, Period  # noqa: TC001 - FastAPI reads them
from mm2slo_report.web.report_service import respond_cached, service_of
from mm2slo_report.web.response_docs import describe_responses, text_formats
from mm2slo_report.web.status_page import details

if TYPE_CHECKING:
    from mm2slo_core.reporting import slo_report
    from mm2slo_report.web.report_service import ReportService

router = APIRouter(tags=["reports"])


@router.get(
    "/slo/report",
    summary="Report",
    response_model=Report,
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
    flows = query_parameters.parse_flows("flow", flow, service.flows)
    as_of = service.instant(at)
    service.check_period(period, as_of)

    def make() -> Body:
        found = service.report(as_of, period)
        if flows:
            chosen = tuple(each for each in found.entries if each.objective.flow in flows)
            found = replace(found, entries=chosen)
        return _rendered(service, found, chosen_format)

    return respond_cached(
        request,
        (as_of, period, flows, chosen_format),
        make,
        service.freshness(at, as_of),
        charged=True,
        vary="Accept",
    )


def _rendered(service: ReportService, found: slo_report.Report, format_: ReportFormat) -> Body:
    # Imported on first use to keep the start fast.
    from mm2slo_report import rendering

    references = service.settings.references
    costs = costliest(service.costly_details(found))
    if format_ is ReportFormat.JSON:
        incidents = [ObjectiveIncident.of(each) for each in costs]
        return Body.json(Report.of(found, references, incidents=incidents))
    if format_ is ReportFormat.CSV:
        name = f"slo-{found.window.name if found.window else 'report'}.csv"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Body.text(rendering.as_csv(found, costs), MEDIA[format_], headers)
    if format_ is ReportFormat.MARKDOWN:
        return Body.text(rendering.as_markdown(found, costs), MEDIA[format_])
    return Body.text(
        rendering.as_html(found, details(service, found), costs, references=references),
        MEDIA[format_],
        {"Content-Security-Policy": rendering.CONTENT_SECURITY_POLICY},
    )
