"""What was worked out a moment ago, kept: each value is worked out once, however many ask."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

V = TypeVar("V")


class _Kept(NamedTuple, Generic[V]):
    value: V
    until: float
    size: int


class Cache(Generic[V]):
    """Keeps up to *capacity* of values (each as large as *size* says) for *seconds*.

    Safe to use from several threads: those that ask for a value that is being worked out wait for
    it. What fails is kept for nobody but those who wait.
    """

    def __init__(
        self,
        *,
        seconds: float,
        capacity: int,
        size: Callable[[V], int] = lambda _: 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._capacity = capacity
        self._size = size
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept[V]] = OrderedDict()
        self._flights: dict[Hashable, Future[V]] = {}
        self._taken = 0
        self._era = 0

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of *key*, by *make* if it is not kept. Raises what *make* raises."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None and found.until > self._clock():
                self._kept.move_to_end(key)
                return found.value
            flight = self._flights.get(key)
            leads = flight is None
            if flight is None:
                flight = self._flights[key] = Future()
            era = self._era
        if not leads:
            return flight.result()
        return self._lead(key, make, flight, era)

    def peek(self, key: Hashable) -> V | None:
        """The value of *key* if it is kept."""
        with self._lock:
            found = self._kept.get(key)
            return found.value if found is not None and found.until > self._clock() else None

    def clear(self) -> None:
        """Forget everything, also what is being worked out from what was true before."""
        with self._lock:
            self._kept.clear()
            self._flights.clear()
            self._taken = 0
            self._era += 1

    def _lead(self, key: Hashable, make: Callable[[], V], flight: Future[V], era: int) -> V:
        try:
            value = make()
        except BaseException as error:
            self._land(key, flight)
            flight.set_exception(error)
            raise
        with self._lock:
            if era == self._era:
                self._keep(key, value)
        self._land(key, flight)
        flight.set_result(value)
        return value

    def _land(self, key: Hashable, flight: Future[V]) -> None:
        with self._lock:
            if self._flights.get(key) is flight:
                del self._flights[key]

    def _keep(self, key: Hashable, value: V) -> None:
        former = self._kept.pop(key, None)
        if former is not None:
            self._taken -= former.size
        size = self._size(value)
        if size > self._capacity:
            return
        self._kept[key] = _Kept(value, self._clock() + self._seconds, size)
        self._taken += size
        while self._taken > self._capacity:
            _, oldest = self._kept.popitem(last=False)
            self._taken -= oldest.size
