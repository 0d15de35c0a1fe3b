"""What is answered to which request. Everything is at hand: nothing here asks a cluster."""

from __future__ import annotations

import ipaddress
from http import HTTPStatus
from typing import TYPE_CHECKING

from mm2slo_exporter.exposition import Encoding, Format
from mm2slo_exporter.web.messages import Response, json_response, text_response
from mm2slo_exporter.web.negotiation import choose_encoding, choose_format
from mm2slo_exporter.web.page import SECURITY_HEADERS, render_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_exporter.web.auth import Authenticator
    from mm2slo_exporter.web.messages import Request
    from mm2slo_exporter.web.site import Site

_READ = ("GET", "HEAD")
_VARY = ("Vary", "Accept, Accept-Encoding")
# A browser or a proxy speaks for someone else, who need not sit on this machine.
_SPEAKS_FOR_OTHERS = ("origin", "forwarded", "x-forwarded-for", "x-real-ip", "via")


def respond(request: Request, site: Site, authenticator: Authenticator) -> Response:
    """The response to *request*. The probes are open; the rest needs authentication."""
    known = authenticator.allows(request.headers.get("authorization"))
    route = _ROUTES.get(request.path)
    if route is None and known:
        return text_response(HTTPStatus.NOT_FOUND, f"no such page; see {', '.join(_ROUTES)}")
    if route is not None and request.path in _PROBES:
        return _checked(request, route[0], lambda: route[1](request, site, known))
    if route is None or not known:
        status, headers = HTTPStatus.UNAUTHORIZED, authenticator.challenges
        return text_response(status, "authentication is needed", headers)
    return _checked(request, route[0], lambda: route[1](request, site, known))


def _checked(
    request: Request, methods: tuple[str, ...], answer: Callable[[], Response]
) -> Response:
    if request.method in methods:
        return answer()
    allowed = ", ".join(methods)
    text = f"{request.path} answers {allowed}"
    return text_response(HTTPStatus.METHOD_NOT_ALLOWED, text, (("Allow", allowed),))


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
    encoded = (("Content-Encoding", encoding.value),) if encoding is not Encoding.IDENTITY else ()
    return Response(HTTPStatus.OK, fmt.value, body.chunks, (*encoded, _VARY))


def _health(_request: Request, _site: Site, _known: bool) -> Response:
    return text_response(HTTPStatus.OK, "ok")


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


_ROUTES = {
    "/": (_READ, _page),
    "/metrics": (_READ, _metrics),
    "/healthz": (_READ, _health),
    "/readyz": (_READ, _ready),
    "/-/reload": (("POST",), _reload),
}
_PROBES = frozenset({"/healthz", "/readyz"})
