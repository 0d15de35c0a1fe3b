"""What benchmarks share: the other side of each comparison."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge

from mm2slo_exporter.exposition.family import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mm2slo_exporter.exposition import Family


def registry_of(families: Sequence[Family]) -> tuple[CollectorRegistry, int]:
    """A registry of prometheus_client with the same series; the number of histograms left out."""
    registry = CollectorRegistry()
    left_out = 0
    for family in families:
        metric = family.metric
        gauge = Gauge(
            metric.name, metric.help, metric.labels_at(family.granularity), registry=registry
        )
        for labels, value in family.series:
            if isinstance(value, Histogram):
                left_out += 1
            elif labels:
                gauge.labels(*labels).set(value)
            else:
                gauge.set(value)
    return registry, left_out


def fetch(port: int, request: bytes) -> int:
    """Send *request* and read until the other side closes; the bytes read."""
    received = 0
    buffer = bytearray(1 << 20)
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request)
        while size := connection.recv_into(buffer):
            received += size
    return received


@contextmanager
def bare_sender(content: bytes) -> Iterator[int]:
    """The port of a process that answers any request with *content*: the least a server can do."""
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("bare_sender.py"))],
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
