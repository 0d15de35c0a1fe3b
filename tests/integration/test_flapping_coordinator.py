"""librdkafka's assertion on a broken coordinator connection ends one request, not the process."""

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import HOST, free_ports
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

_MAX_UP_SECONDS = 0.6
_MAX_DOWN_SECONDS = 0.3


class FlappingProxy:
    """Forwards *port* to a broker's port, for tenths of a second at a time."""

    def __init__(self, port: int, broker: int) -> None:
        self._broker = broker
        self._random = random.Random(5)
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._made: list[socket.socket] = []
        self._up = True
        self._stopping = threading.Event()
        self._listener = socket.create_server((HOST, port))
        self._threads = [
            threading.Thread(target=self._accept),
            threading.Thread(target=self._flap),
        ]
        for thread in self._threads:
            thread.start()

    def stop_flapping(self) -> None:
        """Keep connections from now on."""
        self._stopping.set()

    def close(self) -> None:
        """Close all connections and end all threads."""
        self.stop_flapping()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join()
        self._break()
        for thread in self._threads[1:]:
            thread.join()
        for each in self._made:
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _address = self._listener.accept()
            except OSError:
                return
            if not self._up:
                client.close()
                continue
            server = socket.create_connection((HOST, self._broker))
            with self._lock:
                self._open += [client, server]
                self._made += [client, server]
            for pair in ((client, server), (server, client)):
                thread = threading.Thread(target=self._pass, args=pair)
                self._threads.append(thread)
                thread.start()

    @staticmethod
    def _pass(origin: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := origin.recv(65536):
                to.sendall(data)
        for end in (origin, to):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _flap(self) -> None:
        while not self._stopping.wait(self._random.uniform(0.05, _MAX_UP_SECONDS)):
            self._up = False
            self._break()
            self._stopping.wait(self._random.uniform(0.0, _MAX_DOWN_SECONDS))
            self._up = True
        self._up = True

    def _break(self) -> None:
        with self._lock:
            broken, self._open = self._open, []
        for each in broken:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@contextmanager
def flapping_proxy(port: int, broker: int) -> Iterator[FlappingProxy]:
    """Run a proxy until the block ends."""
    proxy = FlappingProxy(port, broker)
    try:
        yield proxy
    finally:
        proxy.close()


GROUPS = tuple(f"app-{number}" for number in range(16))
_TIMEOUT = 120.0
"""Seconds; the assertion fails after 1 to 4."""
_SIGABRT_MESSAGE = "the worker process ended with SIGABRT"


def test_group_offsets_with_flapping_coordinator_do_not_block_exit() -> None:
    (port,) = free_ports(1)
    topology = LabTopology(
        clusters=("us",),
        flows=(),
        engine=LabEngine.NONE,
        broker_properties={"advertised.listeners": f"CLIENT://{HOST}:{port}"},
    )
    properties = {
        "bootstrap.servers": f"{HOST}:{port}",
        "reconnect.backoff.ms": "50",
        "reconnect.backoff.max.ms": "200",
    }
    with (
        Lab.start(topology) as lab,
        flapping_proxy(port, lab.cluster("us").ports.client) as proxy,
        ClusterClient("us", properties) as client,
    ):
        ended = None
        end = time.monotonic() + _TIMEOUT
        while ended is None and time.monotonic() < end:
            found = client.group_offsets(GROUPS, timeout=1.0)
            ended = next(
                (
                    each.found
                    for each in found.values()
                    if isinstance(each.found, KafkaOperationError)
                    and _SIGABRT_MESSAGE in each.found.detail
                ),
                None,
            )
        assert ended is not None, f"no process ended within {_TIMEOUT:.0f} s: is the bug fixed?"
        assert "Assertion `eonce->refcnt > 0' failed" in ended.detail
        proxy.stop_flapping()
        # No group has committed offsets.
        found = client.group_offsets(GROUPS, timeout=30.0)
        assert {group: each.found for group, each in found.items()} == {
            group: {} for group in GROUPS
        }
