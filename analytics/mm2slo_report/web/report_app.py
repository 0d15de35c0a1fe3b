"""The report service as an ASGI application, with its OpenAPI document."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as Connection

from mm2slo_core.config.config_document import suggest
from mm2slo_core.user_errors import UserError
from mm2slo_report.reporter import UnknownObjectiveError
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web import (
    audit_routes,
    exclusion_routes,
    flow_routes,
    objective_routes,
    operation_routes,
    report_routes,
)
from mm2slo_report.web.http_responses import (
    ProblemDocument,
    ProblemError,
    ProblemResponse,
    invalid_parameter,
)
from mm2slo_report.web.operation_routes import ProcessMetrics
from mm2slo_report.web.report_service import ReportService, service_of
from mm2slo_report.web.request_checks import OPEN_PATHS, RequestGuard
from mm2slo_web.service_telemetry import RequestLog

logger = logging.getLogger(__name__)

_ROUTERS: Final = (
    # `/slo/report` precedes `/slo/{id}`, which would match it.
    objective_routes.list_router, report_routes.report_router, objective_routes.objective_router,
    flow_routes.router, audit_routes.router, exclusion_routes.router,
    operation_routes.health_router, operation_routes.metrics_router,
    report_routes.page_router,
)  # fmt: skip


def create_app(service: ReportService) -> ASGIApp:
    """The ASGI application for *service*, which the caller opens and closes."""
    app = FastAPI(
        title="mm2slo report",
        docs_url=None,  # these pages load scripts from other sites
        redoc_url=None,
        openapi_url="/openapi.json",
        dependencies=[Depends(check_parameter_names)],
        redirect_slashes=False,
    )
    app.state.service = service
    app.state.metrics = ProcessMetrics()
    app.state.readiness = operation_routes.SharedReadiness(service)
    for router in _ROUTERS:
        app.include_router(router)
    for kind, problem_of in _PROBLEMS.items():
        app.add_exception_handler(kind, _handler(problem_of))
    app.openapi = lambda: openapi_document(app, service.settings.version)  # type: ignore[method-assign] # as FastAPI documents it
    guarded = RequestGuard(_RequestCounter(app), service.settings)
    return RequestLog(guarded, OPEN_PATHS | {"/metrics"})


async def check_parameter_names(request: Request) -> None:
    """Reject unknown and repeated query parameters instead of ignoring a value, and missing ones.

    Required parameters are enumerations.
    """
    known = {each.alias: each for each in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        values = request.query_params.getlist(name)
        if name in known and len(values) > 1 and not isinstance(known[name].default, list):
            raise invalid_parameter(name, f"{name} is given {len(values)} times", values[0])
        if name not in known:
            close = suggest(name, known)
            hint = f"; did you mean {close!r}?" if close else ""
            raise invalid_parameter(name, f"unknown parameter {name!r}{hint}", *sorted(known))
    for name, each in known.items():
        if each.field_info.is_required() and name not in request.query_params:
            raise invalid_parameter(name, f"{name} is missing", *each.field_info.annotation)


class _RequestCounter:
    """Counts responses by route, including errors."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", None)
                self._app.state.metrics.count(route, message["status"])
            await send(message)

        await self._app(scope, receive, counted)


def _from_source_error(error: SliSourceError) -> ProblemError:
    if error.slow:
        return ProblemError(HTTPStatus.GATEWAY_TIMEOUT, "source-slow", str(error))
    return ProblemError(HTTPStatus.BAD_GATEWAY, "source", str(error))


def _from_validation_error(error: RequestValidationError) -> ProblemError:
    first, *_ = error.errors()
    where = str(first["loc"][-1])
    context = first.get("ctx", {})
    expected = context.get("expected", "").replace(" or ", ", ").split(", ")
    accepted = [each.strip("'") for each in expected if each]
    accepted += [str(context[bound]) for bound in ("ge", "le") if bound in context]
    accepted += ["1"] if first["type"] == "int_parsing" else []
    return invalid_parameter(where, f"{where}: {first['msg']}", *accepted)


def _from_http_exception(error: HTTPException) -> ProblemError:
    status = HTTPStatus(error.status_code)
    if status is HTTPStatus.NOT_FOUND:
        return ProblemError(status, "not-found", "not found; see /openapi.json for all paths")
    return ProblemError(status, "http", status.description or status.phrase, headers=error.headers)


def _from_exception(_error: Exception) -> ProblemError:
    # The server logs the exception; its text may hold secrets, so the response omits it.
    return ProblemError(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "internal-error",
        "internal error; see the log of the service",
    )


_PROBLEMS: Final[dict[type[Exception], Callable[[Any], ProblemError]]] = {
    ProblemError: lambda problem: problem,
    UnknownObjectiveError: lambda error: ProblemError(
        HTTPStatus.NOT_FOUND, "not-found", str(error), near=list(error.near)
    ),
    SliSourceError: _from_source_error,
    UserError: lambda error: ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "store", str(error)),
    RequestValidationError: _from_validation_error,
    HTTPException: _from_http_exception,
    Exception: _from_exception,
}


def _handler(problem_of: Callable[[Any], ProblemError]) -> Callable[[Request, Exception], Response]:
    def respond(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        service = service_of(request) if isinstance(error, (SliSourceError, UserError)) else None
        if service is not None and service.is_scoped:
            logger.warning("%s", error)
            problem.detail = service.shown(problem.detail)
        return ProblemResponse(problem)

    return respond


_DESCRIPTION: Final = """\
Service level objectives of MirrorMaker 2 flows. Every response is as of one instant (`as_of`, a
whole minute). Values are neither rounded nor clamped; null means unknown or not applicable, never
zero. Times are RFC 3339 in UTC; names of quantities end in their unit, such as `_seconds` and
`_ratio`, which is a share of 1.
"""

_SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "If tokens are configured."},
    "basic": {
        "type": "http",
        "scheme": "basic",
        "description": "The token as password; read only.",
    },
}


def openapi_document(app: FastAPI, version: str) -> dict[str, Any]:
    """The document, built on first use."""
    if not app.openapi_schema:
        built = get_openapi(
            title="mm2slo report", version=version, description=_DESCRIPTION, routes=app.routes
        )
        built["components"]["securitySchemes"] = _SECURITY
        built["components"]["schemas"][ProblemDocument.__name__] = (
            ProblemDocument.model_json_schema()
        )
        built["security"] = [{}, {"bearer": []}, {"basic": []}]
        for methods in built["paths"].values():
            for operation in methods.values():
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _without_null(parameter["schema"])
        app.openapi_schema = built
    return app.openapi_schema


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter without null: an optional parameter is omitted, never null."""
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    if len(options) != 1:
        return schema
    rest = {name: each for name, each in schema.items() if name not in {"anyOf", "default"}}
    return {**options[0], **rest}
