"""The exporter's pages as an ASGI application, and the server for them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.exporter_settings import Listen
from mm2slo_exporter.web.exporter_routes import Request, Response, respond, text_response
from mm2slo_exporter.web.flow_overview import Site
from mm2slo_web.service_telemetry import RequestLog
from mm2slo_web.web_access import OPEN, ReloadedAccess, WebAccess
from mm2slo_web.web_server import ClientLimits, WebServer, bind

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


_LOG: Final = logging.getLogger(__name__)
_MAX_HEADERS: Final = 100
_MAX_HEAD_BYTES: Final = 16 * 1024
_READ_VERSIONS: Final = frozenset({"1.0", "1.1"})


def exporter_server(
    listen: Listen,
    site: Site,
    web_config: ReloadedAccess | None = None,
    *,
    limits: ClientLimits = ClientLimits(),  # noqa: B008 - a frozen value
) -> WebServer:
    """The server of *site*. Raises UserError when the address cannot be bound."""
    access = web_config.current if web_config is not None else lambda: OPEN
    app = RequestLog(ExporterApp(site, access), None)
    return WebServer(app, bind(listen, "exporter.listen"), access, limits)


class ExporterApp:
    """The pages as an ASGI application.

    Not a Starlette one: its response for a body in chunks takes 18 % more CPU time per scrape of
    1 MB, and Starlette is no dependency of the exporter.
    """

    def __init__(self, site: Site, access: Callable[[], WebAccess]) -> None:
        self._site = site
        self._access = access

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        access = self._access()  # users may change while a connection is kept
        request = _request(scope)
        unreadable = _unreadable(scope)
        if unreadable is None:
            response = await self._respond(request, access)
        else:
            response = text_response(unreadable, unreadable.phrase.lower())
        own = {
            b"server": b"mm2slo",
            b"content-type": response.content_type.encode(),
            b"content-length": str(response.length).encode(),
            b"cache-control": b"no-store",
            b"x-content-type-options": b"nosniff",
        }
        if unreadable or _has_body(request.headers):
            # No endpoint reads a body: what is left of one would be taken for the next request on
            # the connection (RFC 9112, section 9.3).
            own[b"connection"] = b"close"
        set_by_user = {name for name, _ in access.headers}
        headers = [
            *(each for each in (*own.items(), *response.headers) if each[0] not in set_by_user),
            *access.headers,
        ]
        status = response.status.value
        await send({"type": "http.response.start", "status": status, "headers": headers})
        for part in () if request.method == "HEAD" else response.parts():
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    async def _respond(self, request: Request, access: WebAccess) -> Response:
        try:
            return await respond(request, self._site, access.authenticator)
        except Exception:  # noqa: BLE001 - a failing page must return a response
            _LOG.exception("%s %s failed", request.method, request.path)
            return text_response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; see the log")


def _request(scope: Scope) -> Request:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        # Fields of one name are one list (RFC 9110, section 5.3).
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    peer = scope["client"]
    return Request(scope["method"], scope["path"], peer[0] if peer else "", headers)


def _unreadable(scope: Scope) -> HTTPStatus | None:
    """Why a request is refused that h11 accepts: by its version, or its size (RFC 6585)."""
    if scope["http_version"] not in _READ_VERSIONS:
        return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
    headers = scope["headers"]
    size = len(scope["raw_path"]) + sum(len(name) + len(value) for name, value in headers)
    if len(headers) > _MAX_HEADERS or size > _MAX_HEAD_BYTES:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    return None


def _has_body(headers: Mapping[str, str]) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
