"""Events on their way from the threads of the canary process to the exporter."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mm2slo_exporter.canary.events import Event


class Outbox:
    """Gathers events from any thread; `take` empties it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []

    def put(self, event: Event) -> None:
        """Add one event."""
        with self._lock:
            self._events.append(event)

    def take(self) -> list[Event]:
        """All events since the last call, in order."""
        with self._lock:
            events, self._events = self._events, []
        return events
