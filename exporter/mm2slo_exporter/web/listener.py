"""Accepts, limits, encrypts, and hands each connection to a handler in a thread of its own."""

from __future__ import annotations

import errno
import logging
import socket
import socketserver
import ssl
import sys
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from mm2slo_core.user_errors import UserError
from mm2slo_exporter.web.connection import linger
from mm2slo_exporter.web.handler import Handler
from mm2slo_exporter.web.tls import certificate_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mm2slo_core.config import Listen
    from mm2slo_exporter.web.access import Access
    from mm2slo_exporter.web.connection import Limits
    from mm2slo_exporter.web.site import Site

_LOG = logging.getLogger(__name__)
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\ntoo many connections\n"
)
_REASONS = {
    errno.EADDRINUSE: "the port is in use; stop the other process or set exporter.listen to a"
    " free port",
    errno.EACCES: "the port may not be used by this user; take one above 1023",
    errno.EADDRNOTAVAIL: "this machine does not have that address; see exporter.listen",
}
_JOIN_SECONDS = 5.0


class Listener(ThreadingHTTPServer):
    """The listening socket and its connections.

    Raises UserError when the address cannot be bound.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, listen: Listen, site: Site, access: Callable[[], Access], limits: Limits
    ) -> None:
        self._site = site
        self._access = access
        self._limits = limits
        self._slots = threading.BoundedSemaphore(limits.connections)
        self._lock = threading.Lock()
        self._closing = False
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._every_interface = not listen.host and socket.has_dualstack_ipv6()
        if listen.is_ipv6 or self._every_interface:
            self.address_family = socket.AF_INET6
        try:
            super().__init__((listen.host, listen.port), BaseHTTPRequestHandler)
        except OSError as error:
            reason = _REASONS.get(error.errno or 0, str(error))
            raise UserError(f"cannot listen on {listen}: {reason}") from error

    def server_bind(self) -> None:
        """As the base class, without its look-up of the host's name, which may take seconds."""
        if self._every_interface:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for the connection, or turn it away when there are too many."""
        if not self._slots.acquire(blocking=False):
            self._turn_away(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._slots.release()
            raise

    def _turn_away(self, request: socket.socket) -> None:
        request.setblocking(False)  # the accepting thread never waits for a client
        with suppress(OSError):
            if self._access().tls is None:
                request.send(_BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """As the base class, then free the slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve one connection, in its own thread, so that a slow client does not block others."""
        access = self._access()
        request.settimeout(self._limits.handshake_seconds)
        connection: socket.socket = request
        if access.tls is not None:
            connection = access.tls.wrap_socket(
                request, server_side=True, do_handshake_on_connect=False
            )
        with connection, self._tracked(connection):
            try:
                self._serve(connection, client_address, access)
            finally:
                linger(connection)

    def _serve(self, connection: socket.socket, client_address: Any, access: Access) -> None:
        if isinstance(connection, ssl.SSLSocket) and not _handshake(connection, access):
            return
        Handler(
            connection,
            client_address,
            self,
            site=self._site,
            access=self._access,
            limits=self._limits,
        )

    @contextmanager
    def _tracked(self, connection: socket.socket) -> Iterator[None]:
        with self._lock:
            if self._closing:
                raise ConnectionAbortedError("the server is closing")
            self._connections[connection] = threading.current_thread()
        try:
            yield
        finally:
            with self._lock:
                del self._connections[connection]

    def cut_connections(self) -> None:
        """End every open connection and wait for its thread."""
        with self._lock:
            self._closing = True
            threads = list(self._connections.values())
            for connection in self._connections:
                with suppress(OSError):
                    # Past TLS, whose state belongs to the connection's own thread.
                    socket.socket.shutdown(connection, socket.SHUT_RDWR)
        for thread in threads:
            thread.join(_JOIN_SECONDS)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are not news; anything else is a fault of ours."""
        error = sys.exception()
        if isinstance(error, OSError):  # TimeoutError and ssl.SSLError are among them
            _LOG.debug("connection from %s ended: %s", client_address[0], error)
        else:
            _LOG.error("connection from %s failed", client_address[0], exc_info=error)


def _handshake(connection: ssl.SSLSocket, access: Access) -> bool:
    """Complete the handshake; False when the client certificate has no allowed name."""
    connection.do_handshake()  # its timeout is a total
    if not access.allowed_names:
        return True
    return not certificate_names(connection).isdisjoint(access.allowed_names)
