"""Produces records at a constant rate during a test."""

import threading
from collections.abc import Mapping, Sequence
from typing import Self

from confluent_kafka import Producer

_SETTINGS = {"log_level": 2, "linger.ms": 0, "message.timeout.ms": 2000}


class SteadyLoad:
    """Produces one record per partition every *interval* seconds, in a thread.

    Records that the source does not accept are dropped, because the source may be down.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        topic: str,
        partitions: Sequence[int],
        interval: float = 0.1,
    ) -> None:
        self._producer = Producer({**_SETTINGS, **properties})
        self._topic = topic
        self._interval = interval
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load-{topic}", daemon=True)
        self.partitions = tuple(partitions)

    def _run(self) -> None:
        while not self._stopping.is_set():
            for partition in self.partitions:
                self._producer.produce(self._topic, b"v", partition=partition)
            self._producer.poll(self._interval)
            self._stopping.wait(self._interval)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._producer.flush(5)
