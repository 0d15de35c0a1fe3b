"""Liveness and readiness while the source hangs, on a real server."""

import http.client
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from report_service_fixture import MemorySource, sample_source, start_service

from mm2slo_core.config.exporter_settings import Listen
from mm2slo_lab.managed_process import wait_for
from mm2slo_report.web.report_app import create_app
from mm2slo_store.store import Store
from mm2slo_web.web_server import WebServer, bind

# More than the server has threads for requests, and than connections.
PARALLEL, CONNECTIONS = 60, 256


class HangingSource(MemorySource):
    """Responds when `released` is set."""

    def __init__(self) -> None:
        super().__init__(sample_source().history)
        self.released = threading.Event()
        self.calls = 0

    def _check(self) -> None:
        self.calls += 1
        self.released.wait()


class Server:
    def __init__(self, store: Store) -> None:
        self.source = HangingSource()
        service = start_service(store, self.source, cache_seconds=30.0).service
        self.web = WebServer(create_app(service), bind(Listen("127.0.0.1", 0), "listen"))
        self.pool = ThreadPoolExecutor(CONNECTIONS)
        self.statuses: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()

    def get(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.web.address.port, timeout=60)
        try:
            connection.request("GET", path, headers={"Host": "localhost"})
            status = connection.getresponse().status
        finally:
            connection.close()
        with self._lock:
            self.statuses[path, status] += 1
        return status

    def send(self, path: str, count: int) -> None:
        """Send *count* requests at once, without waiting for responses."""
        for _ in range(count):
            self.pool.submit(self.get, path)

    def open_connections(self) -> int:
        return len(self.web._server.server_state.connections)


@pytest.fixture
def server(store: Store) -> Iterator[Server]:
    started = Server(store)
    with started.web:
        yield started
        started.source.released.set()
        started.pool.shutdown()


def test_readiness_is_checked_once_for_all_and_does_not_delay_liveness(server: Server) -> None:
    server.send("/readyz", PARALLEL)
    wait_for(lambda: server.source.calls == 1, "the check")
    wait_for(lambda: server.statuses["/readyz", 503] == PARALLEL - 32, "refused requests")
    assert server.get("/healthz") == 200
    server.source.released.set()
    wait_for(lambda: server.statuses["/readyz", 200] == 32, "the result of the check")
    assert server.get("/readyz") == 200
    assert server.source.calls == 1


def test_slow_reports_delay_neither_liveness_nor_readiness(server: Server) -> None:
    server.send("/slo/report", CONNECTIONS)
    wait_for(lambda: server.statuses["/slo/report", 503] == CONNECTIONS - 128, "refused requests")
    assert server.get("/healthz") == 200
    calls = server.source.calls
    server.send("/readyz", 1)
    wait_for(lambda: server.source.calls > calls, "the check")
