"""Processes next to the exporter: one replicates the canary topic, one records arrivals."""

import json
import subprocess
import sys
import threading
import time
from typing import Self

from confluent_kafka import Consumer, Producer, TopicPartition

from large_flow.large_flow import LargeFlow

_CARRIER, _COPY = "heartbeats", "us.heartbeats"
_FAST = {"fetch.wait.max.ms": 10, "enable.auto.commit": False, "group.id": "peer", "log_level": 2}
_SEQUENCE, _SENT = "mm2slo-sequence", "mm2slo-sent"


class PeerProcess:
    """Runs `copy` or `consume` until the context ends."""

    def __init__(self, role: str, flow: LargeFlow) -> None:
        clusters = json.dumps([flow.source, flow.target])
        self._process = subprocess.Popen(
            [sys.executable, __file__, role, clusters], stdout=subprocess.PIPE, text=True
        )
        self._arrivals: dict[int, tuple[float, float]] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def arrivals(self) -> dict[int, tuple[float, float]]:
        """Times of arrival and of sending (epoch seconds), by sequence number."""
        return dict(self._arrivals)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                sequence, at, sent = line.split()
                self._arrivals.setdefault(int(sequence), (float(at), int(sent) / 1000))


def copy(source: dict[str, str], target: dict[str, str]) -> None:
    consumer = _at_end(source, _CARRIER)
    producer = Producer({**target, "linger.ms": 0, "log_level": 2})
    while True:
        message = consumer.poll(1.0)
        producer.poll(0)
        if message is not None and message.error() is None:
            producer.produce(
                _COPY,
                message.value(),
                message.key(),
                partition=0,
                headers=message.headers() or [],
                timestamp=message.timestamp()[1],
            )


def consume(target: dict[str, str]) -> None:
    consumer = _at_end(target, _COPY)
    while True:
        message = consumer.poll(1.0)
        at = time.time()
        if message is None or message.error() is not None:
            continue
        headers = dict(message.headers() or [])
        sequence, sent = headers.get(_SEQUENCE), headers.get(_SENT)
        if isinstance(sequence, bytes) and isinstance(sent, bytes):
            print(sequence.decode(), at, sent.decode(), flush=True)


def _at_end(properties: dict[str, str], topic: str) -> Consumer:
    consumer = Consumer({**properties, **_FAST})
    partition = TopicPartition(topic, 0)
    _start, end = consumer.get_watermark_offsets(partition, timeout=60)
    consumer.assign([TopicPartition(topic, 0, end)])
    return consumer


def main() -> None:
    role, clusters = sys.argv[1:]
    source, target = json.loads(clusters)
    if role == "copy":
        copy(source, target)
    else:
        consume(target)


if __name__ == "__main__":
    main()
