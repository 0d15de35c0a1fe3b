"""`/healthz` and `/readyz`: liveness and readiness."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final, Literal

from fastapi import APIRouter, Request, Response

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.step_counts import MINUTE_MS, whole_minute
from mm2slo_core.user_errors import UserError
from mm2slo_report.rendering.response_model import ResponseModel
from mm2slo_report.sources.sli_source import SliSourceError
from mm2slo_report.web.http_responses import Body
from mm2slo_report.web.report_service import ReportService, service_of
from mm2slo_report.web.response_docs import describe_responses

router = APIRouter(tags=["operations"])


class Health(ResponseModel):
    status: Literal["ok", "unavailable"] = "ok"
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


_READINESS: Final = describe_responses() | {
    HTTPStatus.SERVICE_UNAVAILABLE.value: {
        "description": "Not ready; the same document.",
        "model": Health,
    }
}


@router.get("/healthz", summary="Liveness", response_model=Health, responses=describe_responses())
def healthz() -> Response:
    """Always 200 while the process serves requests."""
    return _respond(Health(), HTTPStatus.OK)


@router.get(
    "/readyz",
    summary="Readiness",
    response_model=Health,
    responses=_READINESS,
)
def readyz(request: Request) -> Response:
    """503 while the store or the SLI source is unavailable; `problems` lists the reasons.

    `warnings` lists generated rules that Prometheus has not loaded; only alerts depend on them.
    """
    service = service_of(request)
    problems = _problems(service)
    if problems:
        answer = Health(status="unavailable", problems=tuple(problems))
        return _respond(answer, HTTPStatus.SERVICE_UNAVAILABLE)
    return _respond(Health(warnings=tuple(service.missing_rules())), HTTPStatus.OK)


def _problems(service: ReportService) -> list[str]:
    found = []
    tokens = service.settings.tokens
    if tokens is not None and not tokens.valid:
        found.append("report.tokens_file lists no valid token; see the log for the reason")
    now = whole_minute(service.now)
    try:
        service.reporter.facts.exclusions(Span(now - MINUTE_MS, now))
    except UserError as error:
        found.append(str(error))
    try:
        service.reporter.source.indicators()
    except SliSourceError as problem:
        found.append(str(problem))
    except UserError as error:
        if str(error) not in found:
            found.append(str(error))
    return found


def _respond(answer: Health, status: HTTPStatus) -> Response:
    body = Body.json(answer)
    return Response(
        body.content,
        status_code=status,
        media_type=body.media,
        headers={"Cache-Control": "no-store"},
    )
