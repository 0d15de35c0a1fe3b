"""`/flows`: flows with the status of their objectives, and failover readiness."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from mm2slo_core.config.suggestion import suggest
from mm2slo_core.objectives.slo_status import Status
from mm2slo_core.reporting.entry_order import count_by_status, headline
from mm2slo_report.rendering.json_document import entry_document
from mm2slo_report.rendering.page_views import FlowView
from mm2slo_report.rendering.value_format import finite, utc, whole
from mm2slo_report.sources.sli_source import SliSourceError
from mm2slo_report.web import http_responses
from mm2slo_report.web.http_responses import Body
from mm2slo_report.web.objective_routes import At  # noqa: TC001 - FastAPI reads it
from mm2slo_report.web.problem_details import ProblemError, not_found
from mm2slo_report.web.report_service import respond_cached, service_of
from mm2slo_report.web.response_docs import FLOW, FLOWS, READINESS, describe_responses

if TYPE_CHECKING:
    from collections.abc import Collection

    from mm2slo_core.reporting.report_entry import Entry
    from mm2slo_core.topology import Flow
    from mm2slo_report.rendering.page_views import GroupView
    from mm2slo_report.web.report_service import ReportService

router = APIRouter(tags=["flows"])

Slug = Annotated[str, Path(description="Slug of the flow, such as `us-to-eu`.", max_length=200)]


@router.get("/flows", summary="All flows", responses=describe_responses(FLOWS))
def flows(request: Request, at: At = None) -> Response:
    """Each flow with its worst status and the number of objectives by status."""
    service = service_of(request)
    as_of = service.instant(at)

    def make() -> Body:
        report = service.report(as_of)
        found = [
            flow_document(flow, [each for each in report.entries if each.objective.flow == flow])
            for flow in service.flows
        ]
        return Body.json({"as_of": utc(as_of), "flows": found})

    return respond_cached(
        request, (as_of,), make, service.freshness(at, as_of), charged=at is not None
    )


@router.get("/flows/{slug}", summary="One flow", responses=describe_responses(FLOW))
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
            {
                "as_of": utc(as_of),
                "source": report.source,
                "flow": flow_document(flow, entries),
                "now": _current_view(service, flow),
                "entries": [entry_document(each, references) for each in entries],
                "warnings": list(report.warnings),
            }
        )

    return respond_cached(
        request, (as_of,), make, service.freshness(at, as_of), charged=at is not None
    )


@router.get(
    "/flows/{slug}/readiness",
    summary="Failover readiness of consumer groups",
    responses=describe_responses(READINESS, others=(HTTPStatus.SERVICE_UNAVAILABLE,)),
)
def readiness(request: Request, slug: Slug) -> Response:
    """As last evaluated by the exporter; groups that are not ready come first."""
    service = service_of(request)
    flow = _find_flow(service, slug)
    found = [each for each in service.group_views() if each.flow == flow]
    view = next((each for each in service.flow_views() if each.flow == flow), FlowView(flow=flow))
    ordered = sorted(found, key=lambda each: (each.ready is not False, each.ready, each.group))
    document = {
        "flow": flow.label,
        "slug": flow.slug,
        "as_of": utc(service.now // 1000 * 1000),
        "groups": len(ordered),
        "ready": sum(each.ready is True for each in ordered),
        "unreplicated": unreplicated_document(view),
        "readiness": [group_document(each) for each in ordered],
    }
    return http_responses.respond(request, Body.json(document), http_responses.CURRENT)


def _find_flow(service: ReportService, slug: str) -> Flow:
    known = {name: flow for flow in service.flows for name in (flow.slug, flow.label)}
    flow = known.get(slug)
    if flow is None:
        close = suggest(slug, [each.slug for each in service.flows])
        raise not_found("flow", slug, (close,) if close else ())
    return flow


def flow_document(flow: Flow, entries: Collection[Entry]) -> dict[str, Any]:
    counts = count_by_status(entries)
    worst = next((status for status, number in counts.items() if number), Status.NO_DATA)
    return {
        "name": flow.label,
        "slug": flow.slug,
        "source": flow.source,
        "target": flow.target,
        "status": worst.value,
        "headline": headline(entries),
        "objectives": [each.id for each in entries],
    }


def _current_view(service: ReportService, flow: Flow) -> dict[str, Any] | None:
    """The current state; None if no exporter reports the flow."""
    try:
        views = service.flow_views()
    except (ProblemError, SliSourceError):
        return None
    found = next((each for each in views if each.flow == flow), None)
    return None if found is None else view_document(found)


def view_document(view: FlowView) -> dict[str, Any]:
    return {
        "state": view.state,
        "lag_records": None if view.lag_records is None else whole(view.lag_records),
        "lag_seconds": finite(view.lag_seconds),
        "headroom_seconds": finite(view.headroom_seconds),
    }


def unreplicated_document(view: FlowView) -> dict[str, Any]:
    """What would be missing on the target if the source never came back."""
    return {
        "records": whole(view.unreplicated_records),
        "seconds": finite(view.unreplicated_seconds),
        "age_seconds": finite(view.unreplicated_age),
    }


def group_document(view: GroupView) -> dict[str, Any]:
    return {
        "group": view.group,
        "ready": view.ready,
        "reasons": list(view.reasons),
        "checkpoint_lag_records": whole(view.checkpoint_lag),
        "redelivery_records": {
            "lower": whole(view.redelivery_lower),
            "upper": whole(view.redelivery_upper),
        },
        "commits_age_seconds": finite(view.commits_age),
        "unreplicated": {
            "records": whole(view.unreplicated_records),
            "seconds": finite(view.unreplicated_seconds),
        },
        "lag": {
            side: {"records": whole(lag.records), "seconds": finite(lag.seconds)}
            for side, lag in (("source", view.source_lag), ("target", view.target_lag))
        },
    }
