"""What is answered to which request. Everything is at hand: nothing here asks a cluster."""

from __future__ import annotations

import asyncio
import ipaddress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_exporter.exposition import Encoding, Format
from mm2slo_exporter.web.messages import Response, json_response, text_response
from mm2slo_exporter.web.negotiation import choose_encoding, choose_format
from mm2slo_exporter.web.page import SECURITY_HEADERS, render_page
from mm2slo_web.authenticator import TooManyLoginsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_exporter.web.messages import Request
    from mm2slo_exporter.web.site import Site
    from mm2slo_web.authenticator import Authenticator

_READ: Final = ("GET", "HEAD")
_VARY: Final = (b"vary", b"Accept, Accept-Encoding")
# A browser or a proxy speaks for someone else, who need not sit on this machine.
_SPEAKS_FOR_OTHERS: Final = ("origin", "forwarded", "x-forwarded-for", "x-real-ip", "via")


async def respond(request: Request, site: Site, authenticator: Authenticator) -> Response:
    """The response to *request*. The probes are open; the rest needs authentication."""
    route = _ROUTES.get(request.path)
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
        offers = " or ".join(Format)
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


_ROUTES: Final = {
    "/": _Route(_READ, _page),
    "/metrics": _Route(_READ, _metrics),
    "/healthz": _Route(_READ, _health),
    "/readyz": _Route(_READ, _ready),
    "/-/reload": _Route(("POST",), _reload, is_slow=True),
}
_PROBES: Final = frozenset({"/healthz", "/readyz"})
