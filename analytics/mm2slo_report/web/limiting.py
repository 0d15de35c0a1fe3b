"""How often each caller may have something worked out anew."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from mm2slo_report.web.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_CALLERS: Final = 10_000
"""Those who asked least recently are forgotten: by then their allowance is as new."""


class Limiter:
    """A bucket for each caller: *per_minute* at once, refilled evenly (a token bucket)."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Count one. Raises Problem (429) with the time to wait."""
        rate = self._per_minute / 60
        with self._lock:
            now = self._clock()
            left, at = self._buckets.pop(caller, (float(self._per_minute), now))
            left = min(float(self._per_minute), left + (now - at) * rate)
            allowed = left >= 1
            self._buckets[caller] = (left - 1 if allowed else left, now)
            if len(self._buckets) > _MOST_CALLERS:
                self._buckets.popitem(last=False)
        if not allowed:
            seconds = math.ceil((1 - left) / rate)
            raise Problem(
                HTTPStatus.TOO_MANY_REQUESTS,
                "too-many",
                f"{self._per_minute} answers a minute are worked out for each caller; "
                f"ask again in {seconds} s",
                headers={"Retry-After": str(seconds)},
            )
