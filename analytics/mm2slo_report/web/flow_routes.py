"""`/flows`: flows with the status of their objectives, and failover readiness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Request, Response

from mm2slo_core.config.suggestion import suggest
from mm2slo_report.rendering.entry_models import Entry
from mm2slo_report.rendering.page_views import FlowView
from mm2slo_report.rendering.value_format import utc
from mm2slo_report.sources.sli_source import SliSourceError
from mm2slo_report.web import http_responses
from mm2slo_report.web.flow_models import (
    CurrentState,
    FlowDetail,
    FlowList,
    FlowSummary,
    GroupReadiness,
    Readiness,
    Throughput,
)
from mm2slo_report.web.http_responses import Body
from mm2slo_report.web.objective_routes import At  # noqa: TC001 - FastAPI reads it
from mm2slo_report.web.problem_details import ProblemError, not_found
from mm2slo_report.web.report_service import respond_cached, service_of
from mm2slo_report.web.response_docs import describe_responses

if TYPE_CHECKING:
    from mm2slo_core.topology import Flow
    from mm2slo_report.web.report_service import ReportService

router = APIRouter(tags=["flows"])

Slug = Annotated[str, Path(description="Slug of the flow, such as `us-to-eu`.", max_length=200)]


@router.get("/flows", summary="All flows", response_model=FlowList, responses=describe_responses())
def flows(request: Request, at: At = None) -> Response:
    """Each flow with its worst status and the number of objectives by status."""
    service = service_of(request)
    as_of = service.instant(at)

    def make() -> Body:
        report = service.report(as_of)
        found = [
            FlowSummary.of(flow, [each for each in report.entries if each.objective.flow == flow])
            for flow in service.flows
        ]
        return Body.json(FlowList(as_of=utc(as_of), flows=tuple(found)))

    return respond_cached(
        request, (as_of,), make, service.freshness(at, as_of), charged=at is not None
    )


@router.get(
    "/flows/{slug}", summary="One flow", response_model=FlowDetail, responses=describe_responses()
)
def one(request: Request, slug: Slug, at: At = None) -> Response:
    """Its objectives as in the list, and its current state if an exporter reports it."""
    service = service_of(request)
    flow = _find_flow(service, slug)
    as_of = service.instant(at)

    def make() -> Body:
        report = service.report(as_of)
        entries = [each for each in report.entries if each.objective.flow == flow]
        references = service.settings.references
        return Body.json(
            FlowDetail(
                as_of=utc(as_of),
                source=report.source,
                flow=FlowSummary.of(flow, entries),
                now=_current_state(service, flow),
                entries=tuple(Entry.of(each, references) for each in entries),
                warnings=report.warnings,
            )
        )

    return respond_cached(
        request, (as_of,), make, service.freshness(at, as_of), charged=at is not None
    )


@router.get(
    "/flows/{slug}/readiness",
    summary="Failover readiness of consumer groups",
    response_model=Readiness,
    responses=describe_responses(),
)
def readiness(request: Request, slug: Slug) -> Response:
    """As last evaluated by the exporter; groups that are not ready come first."""
    service = service_of(request)
    flow = _find_flow(service, slug)
    found = [each for each in service.group_views() if each.flow == flow]
    view = next((each for each in service.flow_views() if each.flow == flow), FlowView(flow=flow))
    ordered = sorted(found, key=lambda each: (each.ready is not False, each.ready, each.group))
    answer = Readiness.model_validate(
        {
            "flow": flow.label,
            "slug": flow.slug,
            "as_of": service.now // 1000 * 1000,
            "groups": len(ordered),
            "ready": sum(each.ready is True for each in ordered),
            "unreplicated": view,
            "readiness": [GroupReadiness.of(each) for each in ordered],
        }
    )
    return http_responses.respond(request, Body.json(answer), http_responses.CURRENT)


def _find_flow(service: ReportService, slug: str) -> Flow:
    known = {name: flow for flow in service.flows for name in (flow.slug, flow.label)}
    flow = known.get(slug)
    if flow is None:
        close = suggest(slug, [each.slug for each in service.flows])
        raise not_found("flow", slug, (close,) if close else ())
    return flow


def _current_state(service: ReportService, flow: Flow) -> CurrentState | None:
    """The current state; None if no exporter reports the flow."""
    try:
        views = service.flow_views()
    except (ProblemError, SliSourceError):
        return None
    view = next((each for each in views if each.flow == flow), None)
    if view is None:
        return None
    throughput = None
    if view.throughput is not None:
        audit = service.audits.figures_of([flow]).get(flow)
        throughput = Throughput.of(view.throughput, audit, service.now)
    return CurrentState.of(view, throughput)
