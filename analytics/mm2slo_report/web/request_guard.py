"""ASGI middleware: checks the Host header, body size and token; adds security headers."""

from __future__ import annotations

from collections import Counter
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from mm2slo_report.web.http_responses import ProblemResponse
from mm2slo_report.web.problem_details import ProblemError
from mm2slo_report.web.service_settings import host_name, is_address
from mm2slo_report.web.tokens import Scope, find_token

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection

    from mm2slo_report.web.service_settings import Settings
    from mm2slo_report.web.tokens import Token

MAX_BODY_BYTES: Final = 64 * 1024
CALLER: Final = "mm2slo.caller"
"""Key in the connection's scope: the token's name, or the client address."""
TOKEN: Final = "mm2slo.token"
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Health checks send no token; these paths expose no figures."""
_MOST_RUNNING: Final = {"/healthz": 256, "/readyz": 32}
_MOST_OTHERS: Final = 128
"""Requests that run at once: fewer than connections, some of which are left for liveness."""
_SAFE: Final = frozenset({"GET", "HEAD"})
_NO_CONTENT: Final = b"default-src 'none'; frame-ancestors 'none'"
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_TLS_HEADER: Final = (b"strict-transport-security", b"max-age=31536000")


class RequestGuard:
    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._running: Counter[str] = Counter()
        self._headers = (*_HEADERS, *((_TLS_HEADER,) if settings.tls else ()))

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._with_headers(message["headers"])}
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        headers = dict(scope["headers"])
        try:
            self._check_host(headers)
            _check_length(headers)
            scope[TOKEN] = token = self._check_token(scope, headers)
            kind = scope["path"] if scope["path"] in OPEN_PATHS else ""
            if self._running[kind] >= _MOST_RUNNING.get(kind, _MOST_OTHERS):
                raise _too_many()
        except ProblemError as problem:
            await ProblemResponse(problem)(scope, receive, send_with_headers)
            return
        scope[CALLER] = token.name if token else (scope.get("client") or ("",))[0]
        if head:
            scope["method"] = "GET"
        self._running[kind] += 1
        try:
            await self._app(scope, _limited(receive), send_with_headers)
        finally:
            self._running[kind] -= 1

    def _with_headers(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        has_policy = any(name == b"content-security-policy" for name, _ in headers)
        policy = () if has_policy else ((b"content-security-policy", _NO_CONTENT),)
        return [*headers, *self._headers, *policy]

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        name = host_name(headers.get(b"host", b"").decode("latin-1"))
        if name in self._settings.hosts or (self._settings.any_address and is_address(name)):
            return
        raise ProblemError(
            HTTPStatus.MISDIRECTED_REQUEST,
            "unknown-host",
            "unknown host name in the Host header; if clients use it, add it to report.hosts",
        )

    def _check_token(self, scope: Connection, headers: dict[bytes, bytes]) -> Token | None:
        if self._settings.tokens is None or scope["path"] in OPEN_PATHS:
            return None
        credentials = headers.get(b"authorization", b"").decode("latin-1")
        # Browsers send Basic credentials by themselves, so they must not authorize writes (CSRF).
        token = find_token(self._settings.tokens.valid, credentials, basic=scope["method"] in _SAFE)
        if token is None:
            challenge = 'Basic realm="mm2slo", charset="UTF-8"'
            bearer = 'Bearer realm="mm2slo"'
            wants_page = b"text/html" in headers.get(b"accept", b"")
            raise ProblemError(
                HTTPStatus.UNAUTHORIZED,
                "token",
                "no valid token; send Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": challenge if wants_page else bearer},
            )
        return token


def require_write_scope(token: Token | None) -> None:
    """Raise ProblemError unless the token has the scope write."""
    if token is None or token.scope is not Scope.WRITE:
        raise ProblemError(
            HTTPStatus.FORBIDDEN,
            "scope",
            "this request needs a token with the scope write, listed in report.tokens_file",
        )


def _check_length(headers: dict[bytes, bytes]) -> None:
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 12 or int(length) > MAX_BODY_BYTES:
        raise _too_large()


def _limited(receive: Receive) -> Receive:
    """Enforce the size limit on bodies without Content-Length."""
    received = 0

    async def limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MAX_BODY_BYTES:
            raise _too_large()
        return message

    return limited


def _too_many() -> ProblemError:
    return ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "busy",
        "too many requests at once; try again",
        headers={"Retry-After": "1"},
    )


def _too_large() -> ProblemError:
    return ProblemError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too-large",
        f"request body too large; expected at most {MAX_BODY_BYTES:,} bytes",
    )
