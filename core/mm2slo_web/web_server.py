"""A uvicorn server in a thread of its own, on a socket that is bound at once."""

from __future__ import annotations

import errno
import socket
import threading
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from mm2slo_core.config import Listen
from mm2slo_core.user_errors import UserError
from mm2slo_web.guarded_config import GuardedConfig, Limits
from mm2slo_web.reloaded_access import OPEN

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from mm2slo_web.reloaded_access import Access

_REASONS: Final = {
    errno.EADDRINUSE: "the port is in use; stop the other process or set {} to a free port",
    errno.EACCES: "the port may not be used by this user; take one above 1023",
    errno.EADDRNOTAVAIL: "this machine does not have that address; see {}",
}
_BACKLOG: Final = 1024


class WebServer:
    """Serves the ASGI application *app* on a *bound* socket, which it closes.

    Used as a context manager or by start and close. *access* is called for each connection.
    """

    def __init__(
        self,
        app: Any,
        bound: socket.socket,
        access: Callable[[], Access] = lambda: OPEN,
        limits: Limits = Limits(),  # noqa: B008 - a frozen value
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
