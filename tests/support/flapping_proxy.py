"""A proxy in front of a broker that repeatedly breaks all connections."""

import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mm2slo_lab.managed_process import HOST

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
