"""What a request may hold: host, body size, token, query parameters, cursor, Accept header.

`RequestGuard` is the ASGI middleware before every route, which also adds security headers; the
parsers below it are strict, and their errors list valid values.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from mm2slo_core.config.config_document import did_you_mean, suggest
from mm2slo_core.quantity_text import parse_shorthand
from mm2slo_core.topology import Flow
from mm2slo_report.access_tokens import AccessToken, Scope, find_token
from mm2slo_report.service_settings import Settings, host_name, is_address
from mm2slo_report.web.http_responses import ProblemError, ProblemResponse, invalid_parameter

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection


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

_SECURITY_HEADERS: Final = (
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
        self._headers = (*_SECURITY_HEADERS, *((_TLS_HEADER,) if settings.tls else ()))

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
            # HEAD has the headers of GET without content (RFC 9110, 9.3.2); routes know GET only.
            scope["method"] = "GET"
        self._running[kind] += 1
        try:
            await self._app(scope, _limit_body(receive), send_with_headers)
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

    def _check_token(self, scope: Connection, headers: dict[bytes, bytes]) -> AccessToken | None:
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


def require_write_scope(token: AccessToken | None) -> None:
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


def _limit_body(receive: Receive) -> Receive:
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


E = TypeVar("E", bound=StrEnum)
EXAMPLE_INSTANTS: Final = ("2026-07-14T10:30:00Z", "2026-07-14T12:30:00+02:00")

INSTANT_SCHEMA: Final = {"format": "date-time"}
"""JSON Schema for `parse_instant`."""

STEP_SCHEMA: Final = {"pattern": "^[0-9]+[mhdw]$"}
"""JSON Schema for `parse_step`."""
PERIOD_SCHEMA: Final = {
    "pattern": "^([0-9]+[mhdw]|[0-9]{4}(-(Q[1-4]|W[0-9]{2}|[0-9]{2}(-[0-9]{2})?))?)$"
}

_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)

_SIGN_DECODED: Final = re.compile(r" (\d\d:\d\d)\Z", re.ASCII)
"""A `+` that was not escaped as `%2B` decodes to a space."""


def parse_instant(parameter: str, text: str, now: int | None = None) -> int:
    """Epoch ms of an RFC 3339 *text*. Raises ProblemError, also for instants after *now*."""
    value = _SIGN_DECODED.sub(r"+\1", text)
    if not _INSTANT.fullmatch(value):
        raise invalid_parameter(
            parameter,
            f"invalid instant {text!r}; expected RFC 3339 with a time zone",
            *EXAMPLE_INSTANTS,
        )
    try:
        found = round(datetime.fromisoformat(value.upper()).timestamp() * 1000)
    except (ValueError, OverflowError):
        found = -1
    if found < 0:
        raise invalid_parameter(
            parameter, f"invalid instant {text!r}; expected a date since 1970", *EXAMPLE_INSTANTS
        )
    if now is not None and found > now:
        raise invalid_parameter(
            parameter, f"{text!r} is in the future; expected a past instant", *EXAMPLE_INSTANTS
        )
    return found


def parse_step(text: str) -> int:
    """Milliseconds of `5m`, `1h`, `1d`. Raises ProblemError."""
    seconds = parse_shorthand(text)
    if seconds is None:
        raise invalid_parameter(
            "step", f"invalid step {text!r}; expected a multiple of 5m", "5m", "1h", "1d"
        )
    return round(seconds * 1000)


def parse_enum(parameter: str, given: Iterable[str], kind: type[E]) -> tuple[E, ...]:
    """Distinct members of *kind* in the comma-separated values. Raises ProblemError."""
    known = {each.value: each for each in kind}
    found: dict[E, None] = {}
    for text in _split_values(parameter, given, *known):
        if text not in known:
            hint = did_you_mean(text, known, f"expected one of {', '.join(known)}")
            raise invalid_parameter(parameter, f"unknown {parameter} {text!r}; {hint}", *known)
        found[known[text]] = None
    return tuple(found)


def parse_flow(given: str | None, known: Collection[Flow]) -> Flow | None:
    """The first *known* flow that the parameter names, if any. Raises ProblemError."""
    return None if given is None else parse_flows([given], known)[0]


def parse_flows(given: Iterable[str], known: Collection[Flow]) -> tuple[Flow, ...]:
    """The *known* flows named by label or slug. Raises ProblemError."""
    named = {name: flow for flow in known for name in (flow.label, flow.slug)}
    found: dict[Flow, None] = {}
    examples = sorted(named)[:20]
    for text in _split_values("flow", given, *examples):
        flow = named.get(text)
        if flow is None:
            close = suggest(text, named)
            hint = f"; did you mean {close!r}?" if close else ""
            raise invalid_parameter("flow", f"unknown flow {text!r}{hint}", *examples)
        found[flow] = None
    return tuple(found)


def enum_schema(kind: type[StrEnum]) -> dict[str, Any]:
    """JSON Schema for `parse_enum`: members of *kind*, separated by commas."""
    one = "|".join(each.value for each in kind)
    return {"type": "string", "pattern": f"^({one})(,({one}))*$"}


def _split_values(parameter: str, given: Iterable[str], *examples: str) -> list[str]:
    found = [part.strip() for each in given for part in each.split(",")]
    if not all(found):
        raise invalid_parameter(
            parameter, f"empty value of {parameter}; omit the parameter to select all", *examples
        )
    return found


_CURSOR_PARAMETER: Final = "cursor"
_MAX_CURSOR: Final = 1_000
_DIGEST: Final = 12


class PageCursor(NamedTuple):
    """The item before the page, and the instant of the list or item (epoch ms)."""

    after: str
    as_of: int = 0


def encode_cursor(cursor: PageCursor, query: Mapping[str, object]) -> str:
    """Encode *cursor* for use with the same *query* only."""
    content = json.dumps([cursor.after, cursor.as_of, _query_digest(query)], separators=(",", ":"))
    return base64.urlsafe_b64encode(content.encode()).decode().rstrip("=")


def decode_cursor(text: str, query: Mapping[str, object]) -> PageCursor:
    """Decode *text*. Raises ProblemError for an invalid cursor or one of another query."""
    try:
        # Truncation makes an overlong cursor invalid.
        coded = text[:_MAX_CURSOR].encode("ascii")
        content = base64.b64decode(coded + b"=" * (-len(coded) % 4), b"-_", validate=True)
        after, as_of, digest = json.loads(content)
    except (ValueError, TypeError, binascii.Error, RecursionError):
        after = as_of = digest = None
    if (
        not isinstance(after, str)
        or not after.isprintable()
        or type(as_of) is not int
        or not 0 <= as_of < 1 << 53
    ):
        raise invalid_parameter(
            _CURSOR_PARAMETER, "invalid cursor; expected the value of `next` from the previous page"
        )
    if digest != _query_digest(query):
        raise invalid_parameter(
            _CURSOR_PARAMETER,
            "this cursor belongs to another query; change no other parameter than limit",
        )
    return PageCursor(after, as_of)


def _query_digest(query: Mapping[str, object]) -> str:
    content = json.dumps(query, sort_keys=True, default=str)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]


class ReportFormat(StrEnum):
    """Values of the parameter `format`."""

    JSON = "json"
    CSV = "csv"
    MARKDOWN = "md"
    HTML = "html"


MEDIA_OF_FORMAT: Final = {
    ReportFormat.JSON: "application/json",
    ReportFormat.CSV: "text/csv",
    ReportFormat.MARKDOWN: "text/markdown",
    ReportFormat.HTML: "text/html",
}
_ANY_MEDIA: Final = "*/*"


def prefers_html(accept: str | None) -> bool:
    """Whether *accept* is that of a browser: HTML rather than JSON."""
    ranges = _media_ranges(accept)
    return _quality(ranges, MEDIA_OF_FORMAT[ReportFormat.HTML]) > _quality(
        ranges, MEDIA_OF_FORMAT[ReportFormat.JSON]
    )


def negotiate_format(accept: str | None) -> ReportFormat:
    """The best format for *accept*; JSON if all are equal. Raises ProblemError (406)."""
    ranges = _media_ranges(accept)
    best: tuple[float, ReportFormat] | None = None
    for format_, media in MEDIA_OF_FORMAT.items():
        quality = _quality(ranges, media)
        if quality > 0 and (best is None or quality > best[0]):
            best = (quality, format_)
    if best is None:
        raise ProblemError(
            HTTPStatus.NOT_ACCEPTABLE,
            "not-acceptable",
            "no report format matches the Accept header",
            accepted=list(MEDIA_OF_FORMAT.values()),
        )
    return best[1]


def _media_ranges(accept: str | None) -> list[tuple[str, float]]:
    return [_media_range(each) for each in (accept or _ANY_MEDIA).split(",") if each.strip()]


def _quality(ranges: list[tuple[str, float]], media: str) -> float:
    """That of the most specific matching range; 0 without any."""
    matching = [(rank, q) for name, q in ranges if (rank := _rank(name, media))]
    return max(matching)[1] if matching else 0.0


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    for each in parameters:
        key, _, value = each.partition("=")
        if key.strip() == "q":
            try:
                return name, min(max(float(value), 0.0), 1.0)
            except ValueError:
                return name, 0.0
    return name, 1.0


def _rank(name: str, media: str) -> int:
    """How specifically the range *name* matches *media*; 0 if it does not."""
    if name == media:
        return 3
    if name == f"{media.partition('/')[0]}/*":
        return 2
    return 1 if name == _ANY_MEDIA else 0
