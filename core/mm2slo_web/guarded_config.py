"""Limits on clients, and the uvicorn settings that apply them."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from mm2slo_web.guarded_connection import GuardedConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from mm2slo_web.reloaded_access import Access

_SHUTDOWN_SECONDS: Final = 5
_TWO_LENGTHS: Final = frozenset({b"content-length", b"transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Limits:
    """How much clients may hold. Times in seconds; each is a total, not a pause between bytes."""

    connections: int = 256
    request_seconds: float = 10.0
    """From the connection, or the first byte of a later request, to the request's last byte."""
    idle_seconds: int = 120
    send_seconds: float = 60.0
    head_bytes: int = 16 * 1024


class GuardedConfig(uvicorn.Config):
    """uvicorn's settings, with what all connections of a server share."""

    def __init__(self, app: Any, access: Callable[[], Access], limits: Limits) -> None:
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
