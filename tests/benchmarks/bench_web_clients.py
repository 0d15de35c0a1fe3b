"""Time of a scrape and of a health check while 1,000 silent and 1,000 trickling clients connect.

The server runs in a process of its own. Trickling clients have shaken hands, if with TLS, and send
one byte of a request per round. Clients that made room connect again, as an attacker would.
"""

import http.client
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from web_tls import trusting, write_config

CLIENTS, ROUNDS = 1_000, 300
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"a" * 4_000


def serve(config: str) -> None:
    """Serve 28,000 series; prints the port."""
    from bench_exposition import OneSnapshot, families  # type: ignore[import-not-found]

    from mm2slo_core.config.exporter_settings import Listen
    from mm2slo_exporter.exposition_renderer import Renderer
    from mm2slo_exporter.web.exporter_app import exporter_server
    from mm2slo_web.access_files import web_config_file

    site = OneSnapshot(Renderer().render(families(28_000, 0)))
    web_config = web_config_file(Path(config)) if config else None
    with exporter_server(Listen("127.0.0.1", 0), site, web_config) as server:
        print(server.address.port, flush=True)
        sys.stdin.read()


class Crowd(threading.Thread):
    """Keeps clients connected until `ended` is set; *context* encrypts the trickling ones."""

    def __init__(self, port: int, context: ssl.SSLContext | None) -> None:
        super().__init__()
        self._port = port
        self._context = context
        self.connected = threading.Event()
        self.ended = threading.Event()

    def run(self) -> None:
        clients = [self._client(trickles=n % 2 == 0) for n in range(2 * CLIENTS)]
        self.connected.set()
        for at in range(len(REQUEST)):
            for number, client in enumerate(clients):
                if self.ended.is_set():
                    break
                try:
                    if number % 2 == 0:
                        client.send(REQUEST[at : at + 1])
                except OSError:
                    client.close()
                    clients[number] = self._client(trickles=True)
            if self.ended.wait(0.1):
                break
        for client in clients:
            client.close()

    def _client(self, *, trickles: bool) -> socket.socket:
        client = socket.create_connection(("127.0.0.1", self._port), timeout=10)
        if trickles and self._context is not None:
            with suppress(OSError):
                return self._context.wrap_socket(client, server_hostname="127.0.0.1")
        return client


def fetch(port: int, path: str, context: ssl.SSLContext | None) -> float:
    """Milliseconds of a request over a new connection."""
    start = time.perf_counter()
    connection = (
        http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=context)
        if context
        else http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    )
    connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{path}: {answer.status}")
    return (time.perf_counter() - start) * 1e3


def measure(port: int, context: ssl.SSLContext | None, label: str) -> None:
    for path in ("/metrics", "/healthz"):
        took = sorted(fetch(port, path, context) for _ in range(ROUNDS))
        print(
            f"  {label:<24}{path:<10} p50 {took[ROUNDS // 2]:7.1f} ms  "
            f"p99 {took[ROUNDS * 99 // 100]:7.1f} ms  max {took[-1]:7.1f} ms"
        )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for context in (None, trusting()):
            config = str(write_config(Path(folder))) if context else ""
            command = [sys.executable, __file__, "--serve", config]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as process:
                try:
                    assert process.stdout is not None
                    port = int(process.stdout.readline())
                    print("TLS" if context else "plain HTTP")
                    measure(port, context, "no other client")
                    crowd = Crowd(port, context)
                    crowd.start()
                    crowd.connected.wait()
                    measure(port, context, f"{2 * CLIENTS:,} slow clients")
                    crowd.ended.set()
                    crowd.join()
                finally:
                    process.kill()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main()
