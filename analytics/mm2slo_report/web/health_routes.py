"""`/healthz` and `/readyz`: liveness and readiness."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.minute_counts import MINUTE_MS, whole_minute
from mm2slo_core.user_errors import UserError
from mm2slo_report.sources.sli_source import SliSourceError
from mm2slo_report.web.http_responses import Body
from mm2slo_report.web.report_service import ReportService, service_of
from mm2slo_report.web.response_docs import HEALTH, describe_responses

router = APIRouter(tags=["operations"])

_READINESS: Final = describe_responses(HEALTH)
_READINESS[HTTPStatus.SERVICE_UNAVAILABLE.value] = {
    **_READINESS[HTTPStatus.OK.value],
    "description": "Not ready; the same document.",
}


@router.get("/healthz", summary="Liveness", responses=describe_responses(HEALTH))
def healthz() -> Response:
    """Always 200 while the process serves requests."""
    return _respond({"status": "ok", "problems": [], "warnings": []}, HTTPStatus.OK)


@router.get(
    "/readyz",
    summary="Readiness",
    responses=_READINESS,
)
def readyz(request: Request) -> Response:
    """503 while the store or the SLI source is unavailable; `problems` lists the reasons.

    `warnings` lists generated rules that Prometheus has not loaded; only alerts depend on them.
    """
    service = service_of(request)
    problems = _problems(service)
    if problems:
        document = {"status": "unavailable", "problems": problems, "warnings": []}
        return _respond(document, HTTPStatus.SERVICE_UNAVAILABLE)
    warnings = list(service.missing_rules())
    return _respond({"status": "ok", "problems": [], "warnings": warnings}, HTTPStatus.OK)


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


def _respond(document: dict[str, Any], status: HTTPStatus) -> Response:
    body = Body.json(document)
    return Response(
        body.content,
        status_code=status,
        media_type=body.media,
        headers={"Cache-Control": "no-store"},
    )
