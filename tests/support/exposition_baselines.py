"""Baselines for benchmarks: prometheus_client's registry, and a server that only sends bytes."""

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Gauge

from mm2slo_exporter.exposition_family import Family, Histogram


def client_registry(families: Sequence[Family]) -> tuple[CollectorRegistry, int]:
    """A prometheus_client registry with the same series, and the number of omitted histograms."""
    registry = CollectorRegistry()
    gauges: dict[str, Gauge] = {}
    left_out = 0
    for family in families:
        metric = family.metric
        gauge = gauges.get(metric.name) or Gauge(
            metric.name, metric.help, metric.labels_at(family.granularity), registry=registry
        )
        gauges[metric.name] = gauge
        for labels, value in family.series:
            if isinstance(value, Histogram):
                left_out += 1
            elif labels:
                gauge.labels(*labels).set(value)
            else:
                gauge.set(value)
    return registry, left_out


def fetch(port: int, request: bytes) -> int:
    """Send *request* and read until the server closes; returns the number of bytes read."""
    received = 0
    buffer = bytearray(1 << 20)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request)
        while size := connection.recv_into(buffer):
            received += size
    return received


@contextmanager
def bare_sender(content: bytes) -> Iterator[int]:
    """Run a server that answers any request with *content*; yields its port."""
    process = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(content)
        process.stdin.close()
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main() -> None:
    """Answer any request with the bytes of standard input; prints the port."""
    content = sys.stdin.buffer.read()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            connection, _ = listening.accept()
            with connection:
                if connection.recv(65536):
                    connection.sendall(content)


if __name__ == "__main__":
    main()
