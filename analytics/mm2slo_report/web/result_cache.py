"""A cache that computes each value once for concurrent callers."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

V = TypeVar("V")


class _CacheEntry(NamedTuple, Generic[V]):
    value: V
    until: float
    size: int


class Cache(Generic[V]):
    """Caches values of a total *size* up to *capacity* for *seconds*.

    Thread-safe: concurrent callers of a key share one computation. Errors reach all of them and
    are not cached.
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
        self._entries: OrderedDict[Hashable, _CacheEntry[V]] = OrderedDict()
        self._pending: dict[Hashable, Future[V]] = {}
        self._used = 0
        self._generation = 0

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The cached value of *key*, else the result of *make*. Raises what *make* raises."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None and found.until > self._clock():
                self._entries.move_to_end(key)
                return found.value
            pending = self._pending.get(key)
            computes = pending is None
            if pending is None:
                pending = self._pending[key] = Future()
            generation = self._generation
        if not computes:
            return pending.result()
        return self._compute(key, make, pending, generation)

    def peek(self, key: Hashable) -> V | None:
        """The value of *key* if cached, without computing it."""
        with self._lock:
            found = self._entries.get(key)
            return found.value if found is not None and found.until > self._clock() else None

    def clear(self) -> None:
        """Drop all values, including those being computed from the previous state."""
        with self._lock:
            self._entries.clear()
            self._pending.clear()
            self._used = 0
            self._generation += 1

    def _compute(
        self, key: Hashable, make: Callable[[], V], pending: Future[V], generation: int
    ) -> V:
        try:
            value = make()
        except BaseException as error:
            self._remove_pending(key, pending)
            pending.set_exception(error)
            raise
        with self._lock:
            if generation == self._generation:
                self._store(key, value)
        self._remove_pending(key, pending)
        pending.set_result(value)
        return value

    def _remove_pending(self, key: Hashable, pending: Future[V]) -> None:
        with self._lock:
            if self._pending.get(key) is pending:
                del self._pending[key]

    def _store(self, key: Hashable, value: V) -> None:
        previous = self._entries.pop(key, None)
        if previous is not None:
            self._used -= previous.size
        size = self._size(value)
        if size > self._capacity:
            return
        self._entries[key] = _CacheEntry(value, self._clock() + self._seconds, size)
        self._used += size
        while self._used > self._capacity:
            _, oldest = self._entries.popitem(last=False)
            self._used -= oldest.size
