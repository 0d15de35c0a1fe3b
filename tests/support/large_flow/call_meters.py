"""CPU and wall time of named calls, measured by wrapping methods."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any


@dataclass
class Reading:
    """Sums over calls, in seconds. `process` is the CPU time of all threads during the calls."""

    calls: int = 0
    thread: float = 0.0
    process: float = 0.0
    wall: float = 0.0


class Meters:
    """Readings by name; `take` resets them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._readings: dict[str, Reading] = {}

    def wrap(self, owner: Any, method: str, name: str) -> None:
        setattr(owner, method, self.timed(getattr(owner, method), name))

    def timed(self, work: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(work)
        def measured(*arguments: Any, **named: Any) -> Any:
            thread, process, wall = time.thread_time(), time.process_time(), time.perf_counter()
            try:
                return work(*arguments, **named)
            finally:
                with self._lock:
                    found = self._readings.setdefault(name, Reading())
                    found.calls += 1
                    found.thread += time.thread_time() - thread
                    found.process += time.process_time() - process
                    found.wall += time.perf_counter() - wall

        return measured

    def take(self) -> dict[str, Reading]:
        with self._lock:
            found, self._readings = self._readings, {}
        return found
