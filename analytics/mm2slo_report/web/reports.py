"""`/slo/report`: all objectives over one period, in the form that is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from mm2slo_report.web import parameters
from mm2slo_report.web.answers import Body
from mm2slo_report.web.describing import REPORT, described_report
from mm2slo_report.web.home import details
from mm2slo_report.web.negotiation import MEDIA, Form, form_of
from mm2slo_report.web.objective import At, Period  # noqa: TC001 - FastAPI reads them
from mm2slo_report.web.service import respond_kept, service_of

if TYPE_CHECKING:
    from mm2slo_core.reporting.report import Report
    from mm2slo_report.web.service import Service

router = APIRouter(tags=["reports"])


@router.get("/slo/report", summary="A report", responses=described_report(REPORT))
def report(
    request: Request,
    period: Period = None,
    at: At = None,
    flow: Annotated[list[str], Query(description="Of these flows alone.")] = [],  # noqa: B006 - FastAPI copies it
    wanted: Annotated[
        Form | None, Query(alias="format", description="Its form; else by `Accept`.")
    ] = None,
) -> Response:
    """All forms carry the same figures."""
    service = service_of(request)
    form = form_of(request.headers.get("accept")) if wanted is None else wanted
    flows = parameters.flows("flow", flow, service.flows)
    as_of = service.instant(at)
    service.check_period(period, as_of)

    def make() -> Body:
        found = service.report(as_of, period)
        if flows:
            chosen = tuple(each for each in found.entries if each.objective.flow in flows)
            found = replace(found, entries=chosen)
        return _rendered(service, found, form)

    return respond_kept(
        request,
        (as_of, period, flows, form),
        make,
        service.freshness(at, as_of),
        charged=True,
        vary="Accept",
    )


def _rendered(service: Service, found: Report, form: Form) -> Body:
    # Read when first asked for: a start without HTML need not wait for its templates.
    from mm2slo_report import rendering

    references = service.settings.references
    if form is Form.JSON:
        return Body(rendering.as_json(found, references).encode(), MEDIA[form])
    if form is Form.CSV:
        name = f"slo-{found.window.name if found.window else 'report'}.csv"
        given = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Body.text(rendering.as_csv(found), MEDIA[form], given)
    told = details(service, found)
    if form is Form.MARKDOWN:
        return Body.text(rendering.as_markdown(found, told), MEDIA[form])
    return Body.text(
        rendering.as_html(found, told, references=references),
        MEDIA[form],
        {"Content-Security-Policy": rendering.CONTENT_SECURITY_POLICY},
    )
