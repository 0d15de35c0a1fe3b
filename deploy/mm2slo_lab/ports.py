"""Free TCP ports on the loopback address.

Ports below the range that the system gives to outgoing connections: a broker that is stopped and
started again must find its port free, and a client that dials a dead port inside that range can
be given the very same port for its own end and connect to itself.
"""

from __future__ import annotations

import random
import socket
from contextlib import ExitStack

from mm2slo_lab.errors import LabError

HOST = "127.0.0.1"
FIRST, LAST = 20_000, 31_999  # Linux hands out 32768-60999, macOS 49152-65535
_ATTEMPTS = 500


def free_ports(count: int) -> tuple[int, ...]:
    """*count* different ports that nothing listens on.

    Raises LabError when none can be found.
    """
    chosen: list[int] = []
    with ExitStack() as held:
        for port in random.sample(range(FIRST, LAST + 1), _ATTEMPTS):
            if len(chosen) == count:
                return tuple(chosen)
            probe = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            chosen.append(port)
    raise LabError(f"no {count} free ports on {HOST} among {_ATTEMPTS} between {FIRST} and {LAST}")


def accepts(port: int, timeout: float = 0.5) -> bool:
    """Whether something on the loopback address accepts a connection on *port*."""
    try:
        with socket.create_connection((HOST, port), timeout=timeout):
            return True
    except OSError:
        return False
