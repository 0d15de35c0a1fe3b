"""What a service reports about itself: a log line per request, and series of its process.

`RequestLog` is ASGI middleware; the log lines of a request and its response share an id.
"""

from __future__ import annotations

import contextlib
import logging
import os
import platform
import re
import resource
import time
import uuid
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from mm2slo_core.catalogue import service_metrics as catalogue
from mm2slo_core.catalogue.metric import Metric
from mm2slo_core.log_redaction import REQUEST_ID

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Send
    from starlette.types import Scope as Connection


logger = logging.getLogger(__name__)
_HEADER: Final = b"x-request-id"
_VALID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")


class RequestLog:
    """Takes the id of the header X-Request-ID if it is short and plain, else a random one.

    Successful requests of *frequent* paths, such as health checks, are logged at level debug; if
    that is None, all requests are.
    """

    def __init__(self, app: ASGIApp, frequent: AbstractSet[str] | None) -> None:
        self._app = app
        self._frequent = frequent

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        sent = dict(scope["headers"]).get(_HEADER, b"")
        request_id = sent.decode() if _VALID.fullmatch(sent) else uuid.uuid4().hex
        # Not reset: the server logs an exception of the application in the same context.
        REQUEST_ID.set(request_id)
        # The server answers an exception before the response with 500.
        status, start = 500, time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message["headers"], (_HEADER, request_id.encode())]
                message = {**message, "headers": headers}
            await send(message)

        method = scope["method"]  # a guard may change it
        try:
            await self._app(scope, receive, send_with_id)
        finally:
            path = quote(scope["path"])  # no control characters
            seconds = round(time.perf_counter() - start, 6)
            logger.log(
                self._level(scope["path"], status),
                "%s %s %s",
                method,
                path,
                status,
                extra={"seconds": seconds},
            )

    def _level(self, path: str, status: int) -> int:
        if self._frequent is None:
            return logging.DEBUG
        if status >= 500:
            return logging.WARNING
        return logging.DEBUG if path in self._frequent else logging.INFO


_Series = list[tuple[tuple[str, ...], float]]


def process_series() -> Mapping[Metric, _Series]:
    """Label values and value of each process metric; without /proc, only of Python.

    Those of prometheus-client's collectors, which import servers and clients of HTTP: 1.7 MB.
    """
    python = (platform.python_version(), platform.python_implementation())
    found: dict[Metric, _Series] = {
        catalogue.PYTHON_INFO: [((*python, *platform.python_version_tuple()), 1.0)]
    }
    with contextlib.suppress(OSError):
        found |= {metric: [((), value)] for metric, value in _process_figures(Path("/proc"))}
    return found


def _process_figures(proc: Path) -> Iterator[tuple[Metric, float]]:
    """As man 5 proc describes them."""
    # The name of the program, in parentheses, may contain spaces.
    fields = (proc / "self" / "stat").read_bytes().rpartition(b")")[2].split()
    ticks = os.sysconf("SC_CLK_TCK")
    yield catalogue.PROCESS_VIRTUAL_MEMORY_BYTES, float(fields[20])
    yield catalogue.PROCESS_RESIDENT_MEMORY_BYTES, float(fields[21]) * resource.getpagesize()
    yield catalogue.PROCESS_START_TIME_SECONDS, float(fields[19]) / ticks + _boot_time(proc)
    yield catalogue.PROCESS_CPU_SECONDS_TOTAL, (int(fields[11]) + int(fields[12])) / ticks
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield catalogue.PROCESS_MAX_FDS, float(limit)
    yield catalogue.PROCESS_OPEN_FDS, float(len(list((proc / "self" / "fd").iterdir())))


@cache
def _boot_time(proc: Path) -> float:
    lines = (proc / "stat").read_bytes().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(b"btime "))
