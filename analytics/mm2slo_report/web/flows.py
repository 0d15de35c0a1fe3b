"""`/flows`: the flows, how their objectives stand, and who could fail over."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from mm2slo_core.config.nearest import nearest
from mm2slo_core.objectives.status import Status
from mm2slo_core.reporting.order import by_status
from mm2slo_report.rendering.document import entry_document
from mm2slo_report.rendering.figures import finite, utc, whole
from mm2slo_report.sources.port import SliSourceError
from mm2slo_report.web import answers
from mm2slo_report.web.answers import Body
from mm2slo_report.web.describing import FLOW, FLOWS, READINESS, described
from mm2slo_report.web.objective import At  # noqa: TC001 - FastAPI reads it
from mm2slo_report.web.problems import Problem, unknown
from mm2slo_report.web.service import respond_kept, service_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from mm2slo_core.reporting.entry import Entry
    from mm2slo_core.topology import Flow
    from mm2slo_report.rendering.views import FlowView, GroupView
    from mm2slo_report.web.service import Service

router = APIRouter(tags=["flows"])

Slug = Annotated[str, Path(description="Its slug, as `us-to-eu`.", max_length=200)]


@router.get("/flows", summary="All flows", responses=described(FLOWS))
def flows(request: Request, at: At = None) -> Response:
    """Each with how many of its objectives stand how; its worst status is its own."""
    service = service_of(request)
    as_of = service.instant(at)

    def make() -> Body:
        report = service.report(as_of)
        found = [
            flow_document(flow, [each for each in report.entries if each.objective.flow == flow])
            for flow in service.flows
        ]
        return Body.of({"as_of": utc(as_of), "flows": found})

    return respond_kept(
        request, (as_of,), make, service.freshness(at, as_of), charged=at is not None
    )


@router.get("/flows/{slug}", summary="One flow", responses=described(FLOW))
def one(request: Request, slug: Slug, at: At = None) -> Response:
    """Its objectives as in the list, and how it is right now, where an exporter says so."""
    service = service_of(request)
    flow = _named(service, slug)
    as_of = service.instant(at)

    def make() -> Body:
        report = service.report(as_of)
        entries = [each for each in report.entries if each.objective.flow == flow]
        references = service.settings.references
        return Body.of(
            {
                "as_of": utc(as_of),
                "source": report.source,
                "flow": flow_document(flow, entries),
                "now": _present(service, flow),
                "entries": [entry_document(each, references) for each in entries],
                "warnings": list(report.warnings),
            }
        )

    return respond_kept(
        request, (as_of,), make, service.freshness(at, as_of), charged=at is not None
    )


@router.get(
    "/flows/{slug}/readiness",
    summary="What consumer groups would find at a failover",
    responses=described(READINESS, others=(HTTPStatus.SERVICE_UNAVAILABLE,)),
)
def readiness(request: Request, slug: Slug) -> Response:
    """As the exporter last judged it, the groups that are not ready first."""
    service = service_of(request)
    flow = _named(service, slug)
    found = [each for each in service.group_views() if each.flow == flow]
    ordered = sorted(found, key=lambda each: (each.ready is not False, each.ready, each.group))
    document = {
        "flow": flow.label,
        "slug": flow.slug,
        "as_of": utc(service.now // 1000 * 1000),
        "groups": len(ordered),
        "ready": sum(each.ready is True for each in ordered),
        "readiness": [group_document(each) for each in ordered],
    }
    return answers.respond(request, Body.of(document), answers.NOW)


def _named(service: Service, slug: str) -> Flow:
    known = {name: flow for flow in service.flows for name in (flow.slug, flow.label)}
    flow = known.get(slug)
    if flow is None:
        close = nearest(slug, [each.slug for each in service.flows])
        raise unknown("flow", slug, (close,) if close else ())
    return flow


def flow_document(flow: Flow, entries: Collection[Entry]) -> dict[str, Any]:
    """A flow with how many of its objectives stand how."""
    counts = by_status(entries)
    worst = next((status for status, number in counts.items() if number), Status.NO_DATA)
    return {
        "name": flow.label,
        "slug": flow.slug,
        "source": flow.source,
        "target": flow.target,
        "status": worst.value,
        "headline": {
            "objectives": len(entries),
            **{status.value: number for status, number in counts.items()},
        },
        "objectives": [each.id for each in entries],
    }


def _present(service: Service, flow: Flow) -> dict[str, Any] | None:
    """None where no exporter says anything of the flow."""
    try:
        views = service.flow_views()
    except (Problem, SliSourceError):
        return None
    found = next((each for each in views if each.flow == flow), None)
    return None if found is None else view_document(found)


def view_document(view: FlowView) -> dict[str, Any]:
    """How a flow is right now."""
    return {
        "state": view.state,
        "lag_records": None if view.lag_records is None else whole(view.lag_records),
        "lag_seconds": finite(view.lag_seconds),
        "headroom_seconds": finite(view.headroom_seconds),
    }


def group_document(view: GroupView) -> dict[str, Any]:
    """What a consumer group would find at a failover."""
    return {
        "group": view.group,
        "ready": view.ready,
        "reasons": list(view.reasons),
        "checkpoint_lag_records": whole(view.checkpoint_lag),
        "redelivery_records": {
            "lower": whole(view.redelivery_lower),
            "upper": whole(view.redelivery_upper),
        },
    }
