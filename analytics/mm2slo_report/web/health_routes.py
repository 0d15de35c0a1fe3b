"""`/healthz` and `/readyz`: liveness and readiness."""

from __future__ import annotations

import asyncio
import logging
import time
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

logger = logging.getLogger(__name__)

_LONGEST_READINESS_SECONDS: Final = 2.0

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
async def healthz() -> Response:
    """Always 200 while the process serves requests."""  # async: it waits for no thread
    return _respond(Health(), HTTPStatus.OK)


@router.get(
    "/readyz",
    summary="Readiness",
    response_model=Health,
    responses=_READINESS,
)
async def readyz(request: Request) -> Response:
    """503 while the store or the SLI source is unavailable; the log has the reasons.

    They are checked once for all concurrent requests, and at most every two seconds.

    `warnings` lists generated rules that Prometheus has not loaded; only alerts depend on them.
    """
    answer = await request.app.state.readiness.newest()
    tokens = service_of(request).settings.tokens
    if tokens is not None and not tokens.valid:
        problem = "report.tokens_file lists no valid token; see the log for the reason"
        answer = Health(status="unavailable", problems=(problem, *answer.problems))
    is_ready = answer.status == "ok"
    return _respond(answer, HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE)


def _check(service: ReportService) -> Health:
    problems = _problems(service)
    if problems:
        return Health(status="unavailable", problems=tuple(problems))
    return Health(warnings=tuple(service.missing_rules()))


class SharedReadiness:
    """The newest readiness, which one thread checks for all callers."""

    def __init__(self, service: ReportService) -> None:
        self._service = service
        self._seconds = min(service.settings.cache_seconds, _LONGEST_READINESS_SECONDS)
        self._running: asyncio.Task[Health] | None = None
        self._newest: tuple[float, Health] | None = None

    async def newest(self) -> Health:
        now = time.monotonic()
        if self._newest is not None and now - self._newest[0] < self._seconds:
            return self._newest[1]
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        return await asyncio.shield(self._running)  # a caller that leaves ends no other's wait

    async def _run(self) -> Health:
        try:
            # Not a thread of those that serve requests, which may all be busy.
            found = await asyncio.to_thread(_check, self._service)
        finally:
            self._running = None
        self._newest = (time.monotonic(), found)
        return found


def _problems(service: ReportService) -> list[str]:
    # Anyone may read them, so they name no server and no file.
    found = []
    now = whole_minute(service.now)
    try:
        service.reporter.facts.exclusions(Span(now - MINUTE_MS, now))
    except UserError as error:
        logger.warning("not ready: %s", error)
        found.append("the results store is unavailable; see the log for the reason")
    try:
        service.reporter.source.indicators()
    except (SliSourceError, UserError) as error:
        logger.warning("not ready: %s", error)
        found.append("the source of history is unavailable; see the log for the reason")
    return found


def _respond(answer: Health, status: HTTPStatus) -> Response:
    body = Body.json(answer)
    return Response(
        body.content,
        status_code=status,
        media_type=body.media,
        headers={"Cache-Control": "no-store"},
    )
