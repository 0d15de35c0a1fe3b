"""A consumer group that reads and commits a few times a second."""

import threading
from collections.abc import Mapping
from typing import Self

from confluent_kafka import Consumer, KafkaException

_SETTINGS = {
    "log_level": 2,
    "enable.auto.commit": False,
    "auto.offset.reset": "earliest",
    "session.timeout.ms": 6000,
}


class CommittingGroup:
    """Consumes *topic* as *group* in a thread of its own."""

    def __init__(self, properties: Mapping[str, str], topic: str, group: str) -> None:
        self._consumer = Consumer({**_SETTINGS, **properties, "group.id": group})
        self._consumer.subscribe([topic])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"commits-{group}", daemon=True)
        self.commits = 0

    def _run(self) -> None:
        while not self._stopping.is_set():
            if not self._consumer.consume(100, timeout=0.3):
                continue
            try:
                self._consumer.commit(asynchronous=False)
            except KafkaException:
                continue  # during a rebalance; the next records are committed
            self.commits += 1
        self._consumer.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stopping.set()
        self._thread.join()
