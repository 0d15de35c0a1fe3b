"""A uvicorn server in a thread of its own, with limits on clients and TLS that can change.

uvicorn has no timer for a client that sends nothing or sends slowly, and refuses new clients when
idle ones use up its limit. Here `GuardedConnection` has deadlines, and the connection that has been
idle longest makes room.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, cast

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from mm2slo_core.config.exporter_settings import Listen
from mm2slo_core.user_errors import UserError
from mm2slo_web.web_access import OPEN, WebAccess

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_REASONS: Final = {
    errno.EADDRINUSE: "the port is in use; stop the other process or set {} to a free port",
    errno.EACCES: "the port may not be used by this user; take one above 1023",
    errno.EADDRNOTAVAIL: "this machine does not have that address; see {}",
}
_BACKLOG: Final = 1024


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How much clients may hold. Times in seconds; each is a total, not a pause between bytes."""

    connections: int = 256
    request_seconds: float = 10.0
    """From the connection, or the first byte of a later request, to the request's last byte."""
    idle_seconds: int = 120
    send_seconds: float = 60.0
    head_bytes: int = 16 * 1024


class WebServer:
    """Serves the ASGI application *app* on a *bound* socket, which it closes.

    Used as a context manager or by start and close. *access* is called for each connection.
    """

    def __init__(
        self,
        app: Any,
        bound: socket.socket,
        access: Callable[[], WebAccess] = lambda: OPEN,
        limits: ClientLimits = ClientLimits(),
    ) -> None:
        self._access = access
        self._socket = bound
        host, port = bound.getsockname()[:2]
        self.address = Listen(host, port)
        """Where it listens; the port is the real one when 0 was asked for."""
        self._server = _Server(GuardedConfig(app, access, limits))
        self._thread = threading.Thread(target=self._run, name="web")
        self._ended = threading.Event()

    @property
    def url(self) -> str:
        """The address as a link that works on this machine."""
        return f"{'https' if self._access().tls else 'http'}://{self.address.local}"

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        try:
            self._server.run([self._socket])
        finally:
            self._ended.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait while it runs, at most *seconds*. Raises RuntimeError when it ends by itself."""
        # Not by joining: a signal during that would mark the thread as ended.
        if self._ended.wait(seconds):
            raise RuntimeError("the web server has ended; see the log")

    def close(self) -> None:
        """Stop: no new connection; responses that are being sent may take a few seconds."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._socket.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_BACKLOG)  # more than uvicorn accepts at once

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def bind(listen: Listen, setting: str) -> socket.socket:
    """A listening socket. Raises UserError; *setting* is the configuration key of *listen*."""
    everywhere = listen.host in {"", "::"} and socket.has_dualstack_ipv6()
    try:
        return socket.create_server(
            (listen.host, listen.port),
            family=socket.AF_INET6 if listen.is_ipv6 or everywhere else socket.AF_INET,
            dualstack_ipv6=everywhere,
        )
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, str(error)).format(setting)
        raise UserError(f"cannot listen on {listen}: {reason}") from error


_SHUTDOWN_SECONDS: Final = 5
_TWO_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})


class GuardedConfig(uvicorn.Config):
    """uvicorn's settings, with what all connections of a server share."""

    def __init__(self, app: Any, access: Callable[[], WebAccess], limits: ClientLimits) -> None:
        super().__init__(
            _closing_after_two_lengths(app),
            http=GuardedConnection,
            ws="none",
            loop="asyncio",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level=logging.ERROR,  # clients cause the rest
            access_log=False,
            server_header=False,
            proxy_headers=False,  # no decision depends on headers that clients can set
            timeout_keep_alive=limits.idle_seconds,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            # Also how many connections are accepted at once: each is read before it can be evicted.
            backlog=max(limits.connections // 2, 1),
            h11_max_incomplete_event_size=limits.head_bytes,
        )
        self.access = access
        self.limits = limits
        self.idle: dict[GuardedConnection, None] = {}
        """Connections without a request, longest first."""


def _closing_after_two_lengths(app: ASGIApp) -> ASGIApp:
    """Close the connection after a request with both Content-Length and Transfer-Encoding.

    Another proxy or server may disagree about its end (RFC 9112, section 6.1).
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_and_close(message: Message) -> None:
            if message["type"] == "http.response.start":
                others = [each for each in message["headers"] if each[0] != b"connection"]
                message = {**message, "headers": [*others, (b"connection", b"close")]}
            await send(message)

        names = {name for name, _ in scope.get("headers", ())}
        await app(scope, receive, send_and_close if names >= _TWO_LENGTHS else send)

    return serve


_LOG: Final = logging.getLogger(__name__)
_LINGER_SECONDS: Final = 1.0

_BUSY: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n"
    b"content-type: text/plain; charset=utf-8\r\ncontent-length: 21\r\n\r\ntoo many connections\n"
)


class GuardedConnection(H11Protocol):
    """A connection that ends when its client is too slow, or when another needs its place."""

    transport: asyncio.Transport

    def __init__(
        self,
        config: GuardedConfig,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = config.limits
        self._access = config.access
        self._idle = config.idle
        self._handshake: asyncio.Task[None] | None = None
        self._early = bytearray()
        self._request_deadline: asyncio.TimerHandle | None = None
        self._send_deadline: asyncio.TimerHandle | None = None
        self._is_open = False
        self._is_refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        access = self._access()
        if not self._make_room():
            if access.tls is None:
                self.transport.write(_BUSY)
            self.transport.close()
            return
        # Writing pauses while any byte is unsent: a client that does not read is always noticed.
        self.transport.set_write_buffer_limits(high=1)
        self.connections.add(self)
        self._idle[self] = None
        self._request_deadline = self.loop.call_later(
            self._limits.request_seconds, self._on_slow_request
        )
        if access.tls is None:
            self._open(self.transport)
        else:
            self.transport.pause_reading()
            self._handshake = self.loop.create_task(self._start_tls(access, access.tls))

    def _make_room(self) -> bool:
        if len(self.connections) < self._limits.connections:
            return True
        oldest = next(iter(self._idle), None)
        if oldest is not None:
            oldest.drop()
        return oldest is not None

    async def _start_tls(self, access: WebAccess, context: ssl.SSLContext) -> None:
        try:
            transport = await self.loop.start_tls(
                self.transport,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=self._limits.request_seconds,
                ssl_shutdown_timeout=self._limits.send_seconds,
            )
        except OSError as error:  # ssl.SSLError is one
            _LOG.debug("TLS handshake failed: %s", error)
            self.drop()
            return
        # None or closing: the client is gone again.
        if transport is None or transport.is_closing():
            self.drop()
        elif not access.allows(transport.get_extra_info("peercert")):
            _LOG.debug("client certificate without an allowed name")
            transport.abort()
            self.drop()
        else:
            transport.set_write_buffer_limits(high=1)
            self._open(transport)
            self.data_received(bytes(self._early))

    def _open(self, transport: asyncio.Transport) -> None:
        self._is_open = True
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._is_open:  # arrived with the end of the handshake
            self._early += data
        elif data and not self._is_refused:
            super().data_received(data)
            self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._send_deadline is None:
            self._send_deadline = self.loop.call_later(self._limits.send_seconds, self.drop)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        if self in self._idle or self._is_refused:
            self.drop()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        # Called while h11's error, which knows the status, is handled.
        status = getattr(sys.exception(), "error_status_hint", HTTPStatus.BAD_REQUEST)
        self._refuse(HTTPStatus(status))

    def drop(self) -> None:
        """End the connection at once."""
        self._forget()
        if self._handshake is not None:
            self._handshake.cancel()
        self.transport.abort()

    def _forget(self) -> None:
        self.connections.discard(self)
        self._idle.pop(self, None)
        for timer in (self._request_deadline, self._send_deadline):
            if timer is not None:
                timer.cancel()

    def _watch(self) -> None:
        """Set the deadlines, and whether the connection is idle, by what is awaited now."""
        if self._is_refused or self.transport.is_closing() or self not in self.connections:
            return
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if not is_answering and not self.flow.write_paused:
            self._idle.setdefault(self)
            if self._send_deadline is not None:
                self._send_deadline.cancel()
                self._send_deadline = None
        else:
            self._idle.pop(self, None)
        if self._is_awaiting_request():
            if self._request_deadline is None:
                self._request_deadline = self.loop.call_later(
                    self._limits.request_seconds, self._on_slow_request
                )
        elif self._request_deadline is not None:
            self._request_deadline.cancel()
            self._request_deadline = None

    def _is_awaiting_request(self) -> bool:
        """Whether the first request, or a later one that has started, is incomplete."""
        if self.conn.their_state is h11.IDLE:
            return self.cycle is None or bool(self.conn.trailing_data[0])
        return self.conn.their_state is h11.SEND_BODY

    def _on_slow_request(self) -> None:
        if not self._is_open or not (self.cycle or self.conn.trailing_data[0]):
            self.drop()  # it has sent nothing
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT)

    def _refuse(self, status: HTTPStatus) -> None:
        """Answer a request that cannot be read, and close once the client has read that."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.drop()  # a response has been started
            return
        self._is_refused = True
        if self.cycle is not None:
            self.cycle.disconnected = True  # the application's response is not sent
            self.cycle.message_event.set()
        body = f"{status.phrase.lower()}\n".encode()
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\n"
            f"content-type: text/plain; charset=utf-8\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        # Closing with unread input would make the kernel drop the response.
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._idle[self] = None
        self._request_deadline = self.loop.call_later(_LINGER_SECONDS, self.drop)
