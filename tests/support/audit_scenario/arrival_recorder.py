"""The times at which a consumer received records."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, TopicPartition
from fault_injection import Place

from mm2slo_lab.managed_process import wait_for

_TIMEOUT = 30.0


class ArrivalRecorder:
    """Reads topics in a thread and records when each record arrived.

    A broker stamps a batch before consumers can read it. So a record arrived between its append
    time and the time that is recorded here.
    """

    def __init__(self, properties: Mapping[str, str], topics: Mapping[str, int]) -> None:
        """*topics* maps topics to partition counts."""
        self._consumer = Consumer(
            {
                **properties,
                "log_level": 2,
                "group.id": "arrival-recorder",
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
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="arrival-recorder")
        self._times: dict[str, dict[Place, int]] = {topic: {} for topic in topics}
        self.error: KafkaException | None = None
        self.longest_poll_ms = 0
        """A record may have arrived by so much earlier than at its recorded time."""

    def _run(self) -> None:
        before = time.time_ns() // 1_000_000
        try:
            while not self._stopping.is_set():
                messages = self._consumer.consume(10_000, timeout=0.1)
                at = time.time_ns() // 1_000_000
                self.longest_poll_ms = max(self.longest_poll_ms, at - before)
                before = at
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
                    self._times[topic][Place(partition, offset)] = at
        except KafkaException as error:
            self.error = error
        finally:
            self._consumer.close()

    def wait_arrival_times(self, topic: str, places: Sequence[Place]) -> dict[Place, int]:
        """Wait for *places* and return their arrival times, epoch ms. Raises KafkaException."""

        def all_arrived() -> bool:
            if self.error is not None:
                raise self.error
            return all(place in self._times[topic] for place in places)

        wait_for(all_arrived, f"{len(places)} records of {topic} to arrive", _TIMEOUT)
        return {place: self._times[topic][place] for place in places}

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


@contextmanager
def record_arrivals(
    properties: Mapping[str, str], topics: Mapping[str, int]
) -> Iterator[ArrivalRecorder]:
    """Record arrivals in *topics* (with their partition counts) until the block ends."""
    recorder = ArrivalRecorder(properties, topics)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.stop()
