"""Buffers events from the threads of the canary process to the exporter."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_exporter.canary.canary_events import Event


class Outbox:
    """A thread-safe buffer of events."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []

    def put(self, event: Event) -> None:
        with self._lock:
            self._events.append(event)

    def take(self) -> list[Event]:
        """Remove and return all events, in order."""
        with self._lock:
            events, self._events = self._events, []
        return events
