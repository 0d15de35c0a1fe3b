"""Free TCP ports on the loopback address.

Ports are below the ephemeral range: a restarted broker must find its port free, and a client that
connects to an unused port inside that range may get the same port as its own and connect to itself.
A port stays reserved for the process that was given it, so that labs that start at the same time
cannot be given the same one before their brokers listen.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
from contextlib import ExitStack
from functools import cache

from mm2slo_core.user_folders import cache_folder
from mm2slo_lab.lab_errors import LabError

HOST = "127.0.0.1"
FIRST, LAST = 20_000, 31_999  # ephemeral: Linux 32768-60999, macOS 49152-65535
_ATTEMPTS = 500
_reserved: set[int] = set()


def free_ports(count: int) -> tuple[int, ...]:
    """Return *count* different free ports. Raises LabError when they cannot be found."""
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
            if _reserve(port):
                chosen.append(port)
    raise LabError(
        f"{count} free ports not found on {HOST} in {_ATTEMPTS} attempts from {FIRST} to {LAST}"
    )


def _reserve(port: int) -> bool:
    """Lock the byte at *port* of a file that all labs of this user share, until the process ends.

    Byte-range locks do not conflict within a process, so its own ports are in a set.
    """
    if port in _reserved:
        return False
    try:
        fcntl.lockf(_lock_file(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    _reserved.add(port)
    return True


@cache
def _lock_file() -> int:
    """Descriptor that stays open: closing any descriptor of the file would release the locks."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    return os.open(cache_folder() / "ports.lock", os.O_RDWR | os.O_CREAT)


def accepts(port: int, timeout: float = 0.5) -> bool:
    """Whether a connection to *port* on loopback is accepted."""
    try:
        with socket.create_connection((HOST, port), timeout=timeout):
            return True
    except OSError:
        return False
