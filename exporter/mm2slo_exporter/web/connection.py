"""Bytes of one connection under deadlines: a slow client ends, it does not linger."""

from __future__ import annotations

import http.client
import io
import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed import WriteableBuffer

_GATHER = 64 * 1024
_LINGER_SECONDS = 1.0
_LINGER_READS = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a client may hold. Times in seconds; each is a total, not a pause between bytes."""

    connections: int = 64
    handshake_seconds: float = 10.0
    header_seconds: float = 10.0
    idle_seconds: float = 120.0
    send_seconds: float = 60.0
    header_bytes: int = 16 * 1024


class HeaderTooLargeError(http.client.HTTPException):
    """A request's head is larger than allowed; http.server answers this class with 431."""


class DeadlineReader(io.RawIOBase):
    """Reads a socket up to a deadline and up to a number of bytes, both set per request.

    Raises TimeoutError past the deadline, HeaderTooLargeError past the number.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline = 0.0
        self._budget = 0

    def allow(self, seconds: float, budget: int) -> None:
        """Start a new deadline and a new number of bytes."""
        self.extend(seconds)
        self._budget = budget

    def extend(self, seconds: float) -> None:
        """Start a new deadline alone."""
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        """As the base class asks."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """As the base class asks."""
        if self._budget <= 0:
            raise HeaderTooLargeError("head too large")
        self._connection.settimeout(remaining(self._deadline))
        count = self._connection.recv_into(buffer)
        self._budget -= count
        return count


def remaining(deadline: float) -> float:
    """Seconds until *deadline* by time.monotonic(). Raises TimeoutError past it."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the client took too long")
    return left


def send(connection: socket.socket, chunks: Iterable[bytes], seconds: float) -> None:
    """Send all *chunks* within *seconds*: small ones gathered, large ones as they are.

    Raises TimeoutError when the client does not take them in time.
    """
    deadline = time.monotonic() + seconds
    gathered = bytearray()
    for chunk in chunks:
        if len(chunk) < _GATHER:
            gathered += chunk
        if gathered and (len(chunk) >= _GATHER or len(gathered) >= _GATHER):
            _send_part(connection, gathered, deadline)
            gathered = bytearray()
        if len(chunk) >= _GATHER:
            _send_part(connection, chunk, deadline)
    if gathered:
        _send_part(connection, gathered, deadline)


def _send_part(connection: socket.socket, part: bytes | bytearray, deadline: float) -> None:
    # sendall's timeout is a total since Python 3.5, so one slow large part ends in time, too.
    connection.settimeout(remaining(deadline))
    connection.sendall(part)


def linger(connection: socket.socket) -> None:
    """Say that nothing more comes, and wait shortly for the client to close.

    Closing with unread input would make the kernel drop a response that is still on its way.
    """
    with suppress(OSError):
        # Past TLS: after this side's last byte, only the kernel's end of stream is left to send.
        socket.socket.shutdown(connection, socket.SHUT_WR)
        deadline = time.monotonic() + _LINGER_SECONDS
        for _ in range(_LINGER_READS):
            connection.settimeout(remaining(deadline))
            if not socket.socket.recv(connection, _GATHER):
                return
