"""A site whose answers are at hand, and servers on free loopback ports."""

import http.client
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cutover_samples import SAFE

from mm2slo_core.catalogue.flow_metrics import FLOW_LAG_RECORDS
from mm2slo_core.catalogue.service_metrics import EXPORTER_SERIES
from mm2slo_core.config.exporter_settings import Listen
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.topology import Flow
from mm2slo_exporter.exposition_family import Family
from mm2slo_exporter.exposition_renderer import Renderer, Snapshot
from mm2slo_exporter.web.exporter_app import exporter_server
from mm2slo_exporter.web.flow_overview import (
    ExporterReadiness,
    FlowOverview,
    FlowReadiness,
    ReloadResult,
)
from mm2slo_web.access_files import web_config_file
from mm2slo_web.web_server import WebServer

FLOW = Flow("us", "eu")
READY = ExporterReadiness(ready=True, flows=(FlowReadiness(FLOW, ready=True),))
RELOADED = ReloadResult(done=True, message="configuration read again")


def a_snapshot() -> Snapshot:
    families = [
        Family(FLOW_LAG_RECORDS, [((FLOW.label, "us", "eu"), 12)]),
        Family(EXPORTER_SERIES, [((), 2)]),
    ]
    return Renderer().render(families)


@dataclass
class FakeSite:
    newest: Snapshot = field(default_factory=a_snapshot)
    ready: ExporterReadiness = READY
    flows: tuple[FlowOverview, ...] = ()
    reloaded: ReloadResult = RELOADED
    calls: list[str] = field(default_factory=list)

    def snapshot(self) -> Snapshot:
        self.calls.append("snapshot")
        return self.newest

    def readiness(self) -> ExporterReadiness:
        self.calls.append("readiness")
        return self.ready

    def overview(self) -> tuple[FlowOverview, ...]:
        self.calls.append("overview")
        return self.flows

    def cutover_evidence(self, slug: str) -> CutoverEvidence | None:
        self.calls.append(f"cutover of {slug}")
        return {"us-to-eu": SAFE, "eu-to-us": None}[slug]

    def reload(self) -> ReloadResult:
        self.calls.append("reload")
        return self.reloaded


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes
    all_headers: list[tuple[str, str]]


@dataclass
class Client:
    """One request per call; `raw` gives the socket itself."""

    server: WebServer
    site: Any

    def __call__(
        self,
        path: str,
        headers: dict[str, str] | None = None,
        *,
        method: str = "GET",
        body: bytes | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> Answer:
        host, port = self.server.address.host, self.server.address.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=10, context=tls)
            if tls
            else http.client.HTTPConnection(host, port, timeout=10)
        )
        try:
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            content = response.read()
            found = response.getheaders()
            return Answer(response.status, {k.lower(): v for k, v in found}, content, found)
        finally:
            connection.close()

    def raw(self) -> socket.socket:
        url = urlsplit(self.server.url)
        return socket.create_connection((url.hostname, url.port), timeout=10)

    def exchange(self, sent: bytes) -> bytes:
        """Everything the server says to *sent* until it closes."""
        with self.raw() as connection:
            connection.sendall(sent)
            said = b""
            while part := connection.recv(65536):
                said += part
            return said


@pytest.fixture
def serve() -> Iterator[Callable[..., Client]]:
    with ExitStack() as stack:

        def start(site: Any = None, web_config: Path | None = None, **options: Any) -> Client:
            site = FakeSite() if site is None else site
            file = web_config_file(web_config) if web_config else None
            server = exporter_server(Listen("127.0.0.1", 0), site, file, **options)
            stack.enter_context(server)
            return Client(server, site)

        yield start


@pytest.fixture
def fake_site() -> type[FakeSite]:
    return FakeSite
