"""How many items go into one request, and how many requests are in flight; without I/O."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

MAX_IN_FLIGHT: Final = 128

_WEIGHT: Final = 0.2
"""Of the newest latency in their moving average."""


class RequestWindow:
    """As many requests as are needed to finish in time, one more with each answer at most.

    So a request that crashes the process takes only few others with it: at most *first* and one
    for each answer are in flight.
    """

    def __init__(
        self, first: int, within: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._first = first
        self._end = clock() + within
        self._clock = clock
        self._answers = 0
        self._latency: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is time for another request."""
        return self._clock() < self._end

    def size(self, remaining: int) -> int:
        """The number of requests in flight with *remaining* groups to request."""
        allowed = min(self._first + self._answers, MAX_IN_FLIGHT)
        if self._latency is None:
            return allowed
        left = max(self._end - self._clock(), 0.001)
        # Little's law: requests in flight = requests per second x latency; in half the time left,
        # because latency varies.
        return min(allowed, max(1, math.ceil(2 * remaining / left * self._latency)))

    def record_answer(self, latency: float) -> None:
        """Adapt to the *latency* (seconds) of an answer."""
        self._answers += 1
        if self._latency is None:
            self._latency = latency
        else:
            self._latency += _WEIGHT * (latency - self._latency)


T = TypeVar("T")


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """The items in order, in lists of at most *size* (itertools.batched needs Python 3.12)."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk
