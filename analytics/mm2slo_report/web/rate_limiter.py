"""Limits how many uncached responses each caller may request."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from mm2slo_report.web.problem_details import ProblemError

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_CALLERS: Final = 10_000
"""The least recent callers are dropped; their buckets are full again by then."""


class RateLimiter:
    """A token bucket of *per_minute* for each caller."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Take one token. Raises ProblemError (429) with Retry-After."""
        rate = self._per_minute / 60
        with self._lock:
            now = self._clock()
            left, at = self._buckets.pop(caller, (float(self._per_minute), now))
            left = min(float(self._per_minute), left + (now - at) * rate)
            allowed = left >= 1
            self._buckets[caller] = (left - 1 if allowed else left, now)
            if len(self._buckets) > _MAX_CALLERS:
                self._buckets.popitem(last=False)
        if not allowed:
            seconds = math.ceil((1 - left) / rate)
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too-many-requests",
                f"more than {self._per_minute} uncached responses per minute; retry in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )
