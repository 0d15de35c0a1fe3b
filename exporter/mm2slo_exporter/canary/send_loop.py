"""Sends the canaries of all flows from one source, in one thread with one producer."""

from __future__ import annotations

import heapq
import time
from itertools import count
from typing import TYPE_CHECKING

from mm2slo_kafka.record_producer import RecordProducer

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator

    from mm2slo_exporter.canary.canary_sender import Sender
    from mm2slo_kafka.client_handles import HandleFactory

_DELIVERY_TIMEOUT_SECONDS = 10.0
_POLL_SECONDS = 0.2


class SendLoop:
    """Runs each step when it is due; steps never wait for the cluster."""

    def __init__(
        self,
        handles: HandleFactory,
        *,
        producer: Callable[..., RecordProducer] = RecordProducer,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.producer = producer(handles, delivery_timeout_seconds=_DELIVERY_TIMEOUT_SECONDS)
        self._clock = clock
        self._senders: list[Sender] = []
        self._agenda: list[tuple[float, int, Iterator[float]]] = []
        """Steps by the time of the next one; numbers decide between equal times."""
        self._number = count()

    def add(self, steps: Iterator[float]) -> None:
        """Run *steps*, each of which yields the time of the next one."""
        heapq.heappush(self._agenda, (0.0, next(self._number), steps))

    def add_sender(self, sender: Sender) -> None:
        self._senders.append(sender)
        self.add(sender.run())

    def run(self, stopping: threading.Event) -> None:
        """Send until *stopping* is set, then the final canaries."""
        try:
            while not stopping.is_set():
                due, number, steps = self._agenda[0]
                left = due - self._clock()
                self.producer.poll(max(0.0, min(left, _POLL_SECONDS)))
                if left <= 0:
                    heapq.heapreplace(self._agenda, (next(steps), number, steps))
            for sender in self._senders:
                sender.finish()
        finally:
            self.producer.close()
