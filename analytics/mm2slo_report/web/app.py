"""The service as an ASGI application."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from mm2slo_core.config.nearest import nearest
from mm2slo_core.errors import UserError
from mm2slo_report.reporting import UnknownObjectiveError
from mm2slo_report.sources.port import SliSourceError
from mm2slo_report.web import (
    audits,
    exclusions,
    flows,
    health,
    home,
    listing,
    metrics,
    objective,
    openapi,
    reports,
)
from mm2slo_report.web.answers import ProblemResponse
from mm2slo_report.web.guard import Guard
from mm2slo_report.web.metrics import Requests
from mm2slo_report.web.problems import Problem, refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection

    from mm2slo_report.web.service import Service

_ROUTERS: Final = (
    # `/slo/report` before `/slo/{id}`, which it would be one of.
    listing.router, reports.router, objective.router, flows.router, audits.router,
    exclusions.router, health.router, metrics.router, home.router,
)  # fmt: skip


def create_app(service: Service) -> ASGIApp:
    """The application that answers for *service*; it opens and closes nothing."""
    app = FastAPI(
        title="mm2slo report",
        docs_url=None,  # pages that load their parts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        dependencies=[Depends(known_parameters)],
        redirect_slashes=False,
        default_response_class=Response,  # handlers say themselves of which media type they are
    )
    app.state.service = service
    app.state.requests = Requests()
    app.state.started_at = time.time()
    for router in _ROUTERS:
        app.include_router(router)
    for kind, problem_of in _PROBLEMS.items():
        app.add_exception_handler(kind, _handler(problem_of))
    app.openapi = lambda: openapi.document(app, service.settings.version)  # type: ignore[method-assign] # as FastAPI documents it
    return Guard(_Counting(app), service.settings)


async def known_parameters(request: Request) -> None:
    """Refuse parameters that a route has not: a misspelt one would be passed over silently."""
    known = {each.alias for each in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in known:
            close = nearest(name, known)
            hint = f"; did you mean {close!r}?" if close else ""
            raise refused(name, f"there is no parameter {name!r} here{hint}", *sorted(known))


class _Counting:
    """Counts answers by route; outermost within the guard, so that errors count as well."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", None)
                self._app.state.requests.count(route, message["status"])
            await send(message)

        await self._app(scope, receive, counted)


def _of_unknown(error: UnknownObjectiveError) -> Problem:
    return Problem(HTTPStatus.NOT_FOUND, "unknown", str(error), near=list(error.near))


def _of_source(error: SliSourceError) -> Problem:
    if error.slow:
        return Problem(HTTPStatus.GATEWAY_TIMEOUT, "source-slow", str(error))
    return Problem(HTTPStatus.BAD_GATEWAY, "source", str(error))


def _of_store(error: UserError) -> Problem:
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, "store", str(error))


def _of_validation(error: RequestValidationError) -> Problem:
    first, *_ = error.errors()
    where = str(first["loc"][-1])
    expected = first.get("ctx", {}).get("expected", "")
    accepted = [each.strip("'") for each in expected.replace(" or ", ", ").split(", ") if each]
    return refused(where, f"{where}: {first['msg']}", *accepted)


def _of_http(error: HTTPException) -> Problem:
    status = HTTPStatus(error.status_code)
    if status is HTTPStatus.NOT_FOUND:
        return Problem(status, "unknown", "there is nothing here; see /openapi.json for what is")
    return Problem(status, "http", status.description or status.phrase, headers=error.headers)


def _of_fault(_error: Exception) -> Problem:
    # It goes on to the server's log; the caller gets no part of it: it may say anything.
    return Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "fault", "the service failed; its log says why"
    )


_PROBLEMS: Final[dict[type[Exception], Callable[[Any], Problem]]] = {
    Problem: lambda problem: problem,
    UnknownObjectiveError: _of_unknown,
    SliSourceError: _of_source,
    UserError: _of_store,
    RequestValidationError: _of_validation,
    HTTPException: _of_http,
    Exception: _of_fault,
}


def _handler(problem_of: Callable[[Any], Problem]) -> Callable[[Request, Exception], Response]:
    def answer(_request: Request, error: Exception) -> Response:
        return ProblemResponse(problem_of(error))

    return answer
