"""Equal records on two brokers, for benchmarks of scans."""

import os
from pathlib import Path

from confluent_kafka import Producer

from mm2slo_lab.broker import Broker

TOPIC, PARTITIONS = "scanned", 6
VALUE = bytes(range(256)) + b"-" * 32
HEADERS: list[tuple[str, str | bytes | None]] = [("trace", b"0123456789abcdef")]
_TICKS = os.sysconf("SC_CLK_TCK")


def fill(broker: Broker, count: int, start: int) -> None:
    """Records of about 315 bytes, equal on both clusters; timestamps follow from numbers."""
    broker.admin.create_topic(TOPIC, PARTITIONS)
    settings = {
        # Retried batches must not change places: slices need equal offsets on both sides.
        "enable.idempotence": "true",
        "linger.ms": "50",
        "batch.size": "1000000",
        "queue.buffering.max.messages": "500000",
    }
    producer = Producer({**broker.librdkafka(), **settings})
    for number in range(count):
        while True:
            try:
                producer.produce(
                    TOPIC,
                    value=VALUE[: 280 + number % 8],
                    key=b"k%d" % (number % 400_000),
                    partition=number % PARTITIONS,
                    timestamp=start + number // 1000,
                    headers=HEADERS,
                )
            except BufferError:
                producer.poll(0.05)
            else:
                break
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
