"""`/healthz` and `/readyz`: for what starts and watches services."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from fastapi import APIRouter, Request, Response

from mm2slo_core.errors import UserError
from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.history import MINUTE_MS, whole_minute
from mm2slo_report.sources.port import SliSourceError
from mm2slo_report.web.answers import Body
from mm2slo_report.web.describing import HEALTH, described
from mm2slo_report.web.service import Service, service_of

router = APIRouter(tags=["operations"])

_READINESS: Final = described(HEALTH)
_READINESS[HTTPStatus.SERVICE_UNAVAILABLE.value] = {
    **_READINESS[HTTPStatus.OK.value],
    "description": "It cannot; the same document.",
}


@router.get("/healthz", summary="Whether the service runs", responses=described(HEALTH))
def healthz() -> Response:
    """It answers, so it does."""
    return _answer({"status": "ok", "problems": [], "warnings": []}, HTTPStatus.OK)


@router.get(
    "/readyz",
    summary="Whether it can answer",
    responses=_READINESS,
)
def readyz(request: Request) -> Response:
    """503 while the store or the source of the figures cannot be asked; `problems` say why.

    `warnings` tell which of the generated rules Prometheus has not loaded: alerts miss them,
    figures do not.
    """
    service = service_of(request)
    problems = _problems(service)
    if problems:
        document = {"status": "unavailable", "problems": problems, "warnings": []}
        return _answer(document, HTTPStatus.SERVICE_UNAVAILABLE)
    warnings = list(service.missing_rules())
    return _answer({"status": "ok", "problems": [], "warnings": warnings}, HTTPStatus.OK)


def _problems(service: Service) -> list[str]:
    found = []
    tokens = service.settings.tokens
    if tokens is not None and not tokens.good:
        found.append("report.tokens_file lists no token that lets anybody in: the log says why")
    now = whole_minute(service.now)
    try:
        service.reporter.ledger.exclusions(Span(now - MINUTE_MS, now))
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


def _answer(document: dict[str, Any], status: HTTPStatus) -> Response:
    body = Body.of(document)
    return Response(
        body.content,
        status_code=status,
        media_type=body.media,
        headers={"Cache-Control": "no-store"},
    )
