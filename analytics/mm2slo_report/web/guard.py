"""What every request passes before a handler sees it, and every answer after (ASGI middleware).

The host that was asked for, the size of the body, the token; security headers on the way back.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from mm2slo_report.web.problems import MEDIA, Problem
from mm2slo_report.web.settings import host_name, is_address
from mm2slo_report.web.tokens import Scope, find

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection

    from mm2slo_report.web.settings import Settings
    from mm2slo_report.web.tokens import Token

LARGEST_BODY: Final = 64 * 1024
CALLER: Final = "mm2slo.caller"
"""In the connection's scope: by what a caller is told from others."""
TOKEN: Final = "mm2slo.token"
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Asked by what starts and watches services, which has no token; they tell no figure."""
_SAFE: Final = frozenset({"GET", "HEAD"})
_NO_CONTENT: Final = b"default-src 'none'; frame-ancestors 'none'"
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_TLS_HEADER: Final = (b"strict-transport-security", b"max-age=31536000")


class Guard:
    """Middleware around *app*."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings
        self._headers = (*_HEADERS, *((_TLS_HEADER,) if settings.tls else ()))

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """As ASGI calls it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = scope["method"] == "HEAD"

        async def answer(message: Message) -> None:
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
        except Problem as problem:
            await send_problem(problem, answer)
            return
        scope[CALLER] = token.name if token else (scope.get("client") or ("",))[0]
        if head:
            scope["method"] = "GET"
        await self._app(scope, _limited(receive), answer)

    def _with_headers(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        has_policy = any(name == b"content-security-policy" for name, _ in headers)
        policy = () if has_policy else ((b"content-security-policy", _NO_CONTENT),)
        return [*headers, *self._headers, *policy]

    def _check_host(self, headers: dict[bytes, bytes]) -> None:
        name = host_name(headers.get(b"host", b"").decode("latin-1"))
        if name in self._settings.hosts or (self._settings.any_address and is_address(name)):
            return
        raise Problem(
            HTTPStatus.MISDIRECTED_REQUEST,
            "host",
            "this service is not known by the name that was asked for; "
            "if it should be, add the name to report.hosts",
        )

    def _check_token(self, scope: Connection, headers: dict[bytes, bytes]) -> Token | None:
        if self._settings.tokens is None or scope["path"] in OPEN_PATHS:
            return None
        shown = headers.get(b"authorization", b"").decode("latin-1")
        # What a browser sends by itself must not write: another site could make it do so.
        token = find(self._settings.tokens.good, shown, basic=scope["method"] in _SAFE)
        if token is None:
            challenge = 'Basic realm="mm2slo", charset="UTF-8"'
            bearer = 'Bearer realm="mm2slo"'
            wants_page = b"text/html" in headers.get(b"accept", b"")
            raise Problem(
                HTTPStatus.UNAUTHORIZED,
                "token",
                "a token is needed: send Authorization: Bearer TOKEN",
                headers={"WWW-Authenticate": challenge if wants_page else bearer},
            )
        return token


def refuse_writing(token: Token | None) -> None:
    """Raise Problem where the request may not write."""
    if token is None or token.scope is not Scope.WRITE:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "scope",
            "writing takes a token with the scope write, from report.tokens_file",
        )


async def send_problem(problem: Problem, send: Send) -> None:
    """The problem as a whole answer."""
    body = problem.body()
    headers = [
        (b"content-type", MEDIA.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
    ]
    await send({"type": "http.response.start", "status": problem.status.value, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _check_length(headers: dict[bytes, bytes]) -> None:
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 12 or int(length) > LARGEST_BODY:
        raise _too_large()


def _limited(receive: Receive) -> Receive:
    """*receive*, for bodies that come without a length."""
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > LARGEST_BODY:
            raise _too_large()
        return message

    return limited


def _too_large() -> Problem:
    return Problem(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too-large",
        f"a request may hold {LARGEST_BODY:,} bytes",
    )
