"""What is answered to which request, as values apart from ASGI.

Everything is at hand: nothing here asks a cluster. The format and encoding that a client gets
follow RFC 9110, sections 12.4 and 12.5.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from http import HTTPStatus
from typing import Final, NamedTuple

from mm2slo_exporter.exposition_renderer import Encoding, ExpositionFormat
from mm2slo_exporter.web.flow_overview import SECURITY_HEADERS, Site, render_page
from mm2slo_web.authenticator import Authenticator, TooManyLoginsError

_READ: Final = ("GET", "HEAD")
_PROBES: Final = frozenset({"/healthz", "/readyz"})
# A cache must not give one client's format or encoding to another (RFC 9110, section 12.5.5).
_VARY: Final = (b"vary", b"Accept, Accept-Encoding")

# A browser or a proxy sends these for someone else, who may be on another machine. A page of any
# site can make a browser post to this address without asking (CSRF), but not without `Origin`.
_SPEAKS_FOR_OTHERS: Final = ("origin", "forwarded", "x-forwarded-for", "x-real-ip", "via")


async def respond(request: Request, site: Site, authenticator: Authenticator) -> Response:
    """The response to *request*. The probes are open; the rest needs authentication."""
    # Authentication first: 404 and 405 would show clients without it which pages exist.
    route = _EVIDENCE if _cutover_slug(request.path) else _ROUTES.get(request.path)
    is_probe = request.path in _PROBES
    header = request.headers.get("authorization")
    known = authenticator.recognizes(header)
    try:
        if not known and request.path != "/healthz":  # liveness does not wait for others
            known = await authenticator.allows(header, request.peer)
    except TooManyLoginsError:
        known = False
        if not is_probe:
            return text_response(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "too many logins at once",
                ((b"retry-after", b"1"),),
            )
    if not known and not is_probe:
        status, headers = HTTPStatus.UNAUTHORIZED, authenticator.challenges
        return text_response(status, "authentication is needed", headers)
    if route is None:
        return text_response(HTTPStatus.NOT_FOUND, f"no such page; see {', '.join(_ROUTES)}")
    if request.method not in route.methods:
        allowed = ", ".join(route.methods)
        text = f"{request.path} answers {allowed}"
        headers = ((b"allow", allowed.encode()),)
        return text_response(HTTPStatus.METHOD_NOT_ALLOWED, text, headers)
    if route.is_slow:
        return await asyncio.to_thread(route.answer, request, site, known)
    return route.answer(request, site, known)


def _metrics(request: Request, site: Site, _known: bool) -> Response:
    fmt = choose_format(request.headers.get("accept"))
    encoding = choose_encoding(request.headers.get("accept-encoding"))
    if fmt is None or encoding is None:
        offers = " or ".join(ExpositionFormat)
        return text_response(
            HTTPStatus.NOT_ACCEPTABLE,
            f"offered are {offers}, each plain or with gzip",
            (_VARY,),
        )
    body = site.snapshot().body(fmt, encoding)
    encoded = ((b"content-encoding", encoding.value.encode()),)
    headers = (_VARY,) if encoding is Encoding.IDENTITY else (*encoded, _VARY)
    return Response(HTTPStatus.OK, fmt.value, body.chunks, headers)


def _health(_request: Request, site: Site, known: bool) -> Response:
    stale = site.readiness().stale_flows
    if not stale:
        return text_response(HTTPStatus.OK, "ok")
    text = f"not evaluated recently: {', '.join(stale) if known else 'some flows'}"
    return text_response(HTTPStatus.SERVICE_UNAVAILABLE, text)


def _ready(_request: Request, site: Site, known: bool) -> Response:
    readiness = site.readiness()
    status = HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE
    if not known:  # a probe without credentials learns the verdict, not the names
        return json_response(status, {"ready": readiness.ready})
    flows = [
        {"flow": entry.flow.label, "ready": entry.ready, "waiting_for": list(entry.waiting_for)}
        for entry in readiness.flows
    ]
    return json_response(status, {"ready": readiness.ready, "flows": flows})


def _page(_request: Request, site: Site, _known: bool) -> Response:
    body = render_page(site.overview()).encode()
    return Response(HTTPStatus.OK, "text/html; charset=utf-8", (body,), SECURITY_HEADERS)


def _cutover(request: Request, site: Site, _known: bool) -> Response:
    """Starts to read what only a cutover needs; before that, some of it is not known."""
    slug = _cutover_slug(request.path)
    try:
        evidence = site.cutover_evidence(slug)
    except KeyError:
        return text_response(HTTPStatus.NOT_FOUND, f"no flow {slug} is served here")
    if evidence is None:
        return text_response(
            HTTPStatus.SERVICE_UNAVAILABLE, "read from the next round on", ((b"retry-after", b"5"),)
        )
    return json_response(HTTPStatus.OK, asdict(evidence))


def _cutover_slug(path: str) -> str:
    """The flow of `/flows/{slug}/cutover`; empty for other paths."""
    match = _CUTOVER_PATH.fullmatch(path)
    return match[1] if match else ""


def _reload(request: Request, site: Site, _known: bool) -> Response:
    relayed = [name for name in _SPEAKS_FOR_OTHERS if name in request.headers]
    if relayed or not is_loopback(request.peer):
        return text_response(
            HTTPStatus.FORBIDDEN,
            "a reload is accepted from this machine only: call it there, or send SIGHUP",
        )
    result = site.reload()
    status = HTTPStatus.OK if result.done else HTTPStatus.INTERNAL_SERVER_ERROR
    return text_response(status, result.message)


def is_loopback(peer: str) -> bool:
    """Whether *peer* is an address of this machine alone; IPv4 within IPv6 counts as IPv4."""
    address = ipaddress.ip_address(peer.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


class _Route(NamedTuple):
    methods: tuple[str, ...]
    answer: Callable[[Request, Site, bool], Response]
    is_slow: bool = False


_QUALITY = re.compile(r"(0(\.[0-9]{0,3})?|1(\.0{0,3})?)\Z")

_OFFERS = {
    ExpositionFormat.OPENMETRICS: ("application", "openmetrics-text", "1.0.0"),
    ExpositionFormat.CLASSIC: ("text", "plain", "0.0.4"),
}
_EXACT = 2

# Quality, how exactly the range names the format, and what is preferred where both are equal.
_Rank = tuple[float, int, int]


@dataclass(frozen=True, slots=True)
class _Choice:
    name: str
    parameters: Mapping[str, str]
    quality: float


def choose_format(accept: str | None) -> ExpositionFormat | None:
    """The format for an Accept header; None when none that is offered is acceptable.

    Clients that accept anything, as curl and browsers do, get the classic text; those that name
    both alike get OpenMetrics.
    """
    choices = list(_choices(accept or "*/*"))
    ranked = {fmt: rank for fmt in _OFFERS if (rank := _rank(fmt, choices)) is not None}
    return max(ranked, key=ranked.__getitem__, default=None)


def _rank(fmt: ExpositionFormat, choices: list[_Choice]) -> _Rank | None:
    matches = [(exactness, choice.quality) for choice in choices
               if (exactness := _exactness(fmt, choice)) is not None]  # fmt: skip
    if not matches:
        return None
    exactness, quality = max(matches)  # the most exact range decides, not the most generous
    if not quality:
        return None
    preferred = ExpositionFormat.OPENMETRICS if exactness >= _EXACT else ExpositionFormat.CLASSIC
    return quality, exactness, int(fmt is preferred)


def _exactness(fmt: ExpositionFormat, choice: _Choice) -> int | None:
    main, sub, version = _OFFERS[fmt]
    wanted_main, _, wanted_sub = choice.name.partition("/")
    if choice.parameters.get("version", version) != version:
        return None
    if choice.parameters.get("charset", "utf-8").lower() != "utf-8":
        return None
    if (wanted_main, wanted_sub) == (main, sub):
        return _EXACT + ("version" in choice.parameters)
    if (wanted_main, wanted_sub) == (main, "*"):
        return 1
    return 0 if (wanted_main, wanted_sub) == ("*", "*") else None


def choose_encoding(accept_encoding: str | None) -> Encoding | None:
    """The encoding for an Accept-Encoding header; None when neither is acceptable.

    Without the header nothing is encoded; gzip wins where both are liked equally.
    """
    if accept_encoding is None:
        return Encoding.IDENTITY
    named = {choice.name: choice.quality for choice in _choices(accept_encoding)}
    gzip = named.get("gzip", named.get("x-gzip", named.get("*", 0.0)))
    # Identity is acceptable unless it is refused (RFC 9110, section 12.5.3), but a coding that was
    # asked for goes first.
    identity = named.get("identity")
    if identity is None:
        refused = named.get("*", 1.0) == 0.0
        return Encoding.GZIP if gzip else (None if refused else Encoding.IDENTITY)
    if not gzip and not identity:
        return None
    return Encoding.GZIP if gzip >= identity else Encoding.IDENTITY


def _choices(header: str) -> Iterator[_Choice]:
    for part in header.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        if not name:
            continue
        parameters = {}
        for item in rest:
            key, _, value = item.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"')
        quality = parameters.pop("q", "1")
        # A malformed weight says nothing reliable, so the choice is left out.
        if _QUALITY.match(quality):
            yield _Choice(name.lower(), parameters, float(quality))


@dataclass(frozen=True, slots=True)
class Request:
    """A request without its body, which no endpoint reads. Header names are in lower case."""

    method: str
    path: str
    peer: str
    headers: Mapping[str, str] = field(default_factory=dict)


_PART_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Response:
    status: HTTPStatus
    content_type: str
    chunks: tuple[bytes, ...]
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return sum(map(len, self.chunks))

    def parts(self) -> Iterator[bytes]:
        """The body to be sent: small chunks gathered, large ones as they are."""
        gathered = bytearray()
        for chunk in self.chunks:
            if gathered and len(gathered) + len(chunk) > _PART_BYTES:
                yield bytes(gathered)
                gathered.clear()
            if len(chunk) >= _PART_BYTES:
                yield chunk
            else:
                gathered += chunk
        if gathered:
            yield bytes(gathered)


def text_response(
    status: HTTPStatus, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Response:
    """One line of plain text."""
    return Response(status, "text/plain; charset=utf-8", (f"{text}\n".encode(),), headers)


def json_response(status: HTTPStatus, value: object) -> Response:
    """A JSON document for people and programs: indented, one newline at its end."""
    body = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return Response(status, "application/json; charset=utf-8", (body.encode(),))


_CUTOVER_PATH: Final = re.compile(r"/flows/([^/]+)/cutover")
_EVIDENCE: Final = _Route(_READ, _cutover, is_slow=True)
_ROUTES: Final = {
    "/": _Route(_READ, _page),
    "/metrics": _Route(_READ, _metrics),
    "/healthz": _Route(_READ, _health),
    "/readyz": _Route(_READ, _ready),
    "/-/reload": _Route(("POST",), _reload, is_slow=True),
}
