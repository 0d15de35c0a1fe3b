"""When records could be read, seen by a consumer of the tests' own."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition
from fault_injection import Place

from mm2slo_lab.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TIMEOUT = 30.0


class Witness:
    """Reads topics as they grow, in a thread of its own, and notes when each record came.

    A broker stamps a batch before it lets anyone read it. A record's stamp is therefore the
    earliest time at which it can have arrived, and the time at which the witness had it the latest.
    """

    def __init__(self, properties: Mapping[str, str], topics: Mapping[str, int]) -> None:
        """Of each topic its partitions are given."""
        self._consumer = Consumer(
            {
                **properties,
                "log_level": 2,
                "group.id": "witness",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.assign(
            [
                TopicPartition(topic, partition, 0)
                for topic, partitions in topics.items()
                for partition in range(partitions)
            ]
        )
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="witness")
        self._had: dict[str, dict[Place, int]] = {topic: {} for topic in topics}
        self.failed: KafkaException | None = None

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                messages = self._consumer.consume(10_000, timeout=0.1)
                at = time.time_ns() // 1_000_000
                for message in messages:
                    if (error := message.error()) is not None:
                        raise KafkaException(error)
                    topic, partition, offset = (
                        message.topic(),
                        message.partition(),
                        message.offset(),
                    )
                    assert topic is not None
                    assert partition is not None
                    assert offset is not None
                    self._had[topic][Place(partition, offset)] = at
        except KafkaException as error:
            self.failed = error
        finally:
            self._consumer.close()

    def had(self, topic: str, places: Sequence[Place]) -> dict[Place, int]:
        """When it had each of *places*, epoch ms; it is waited for. Raises KafkaException."""

        def all_of_them() -> bool:
            if self.failed is not None:
                raise self.failed
            return all(place in self._had[topic] for place in places)

        wait_for(all_of_them, f"the witness to have {len(places)} records of {topic}", _TIMEOUT)
        return {place: self._had[topic][place] for place in places}

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def end(self) -> None:
        """Read no more."""
        self._ended.set()
        self._thread.join()


@contextmanager
def witness(properties: Mapping[str, str], topics: Mapping[str, int]) -> Iterator[Witness]:
    """Reads *topics* until the block ends."""
    one = Witness(properties, topics)
    one.start()
    try:
        yield one
    finally:
        one.end()
