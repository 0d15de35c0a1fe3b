"""Canary latency measured by the exporter and by an independent consumer, on the same records.

Both record the arrival of each sequence number on the target; latency starts at the send time in
the header. Measured with one idle topic, then with 10,000 partitions that all change. A plain
consumer and producer replicate the records.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import NoReturn, Self

from confluent_kafka import Consumer, Producer, TopicPartition
from large_flow import ExporterProcess, LargeFlow, Mover, Shape

REACH_MS = 5.0
INTERVAL = "100ms"


_CARRIER, _COPY = "heartbeats", "us.heartbeats"
_FAST = {"fetch.wait.max.ms": 10, "enable.auto.commit": False, "group.id": "peer", "log_level": 2}
_SEQUENCE, _SENT = "mm2slo-sequence", "mm2slo-sent"


class PeerProcess:
    """Runs `copy` or `consume` until the context ends."""

    def __init__(self, role: str, flow: LargeFlow) -> None:
        clusters = json.dumps([flow.source, flow.target])
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--peer", role, clusters], stdout=subprocess.PIPE, text=True
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


def copy(source: dict[str, str], target: dict[str, str]) -> NoReturn:
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


def consume(target: dict[str, str]) -> NoReturn:
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


def percentile(ordered: Sequence[float], share: float) -> float:
    """Nearest rank."""
    return ordered[max(0, -int(-share * len(ordered) // 1) - 1)]


def line(name: str, milliseconds: Sequence[float]) -> None:
    ordered = sorted(milliseconds)
    found = "  ".join(
        f"{what} {figure:8.2f}"
        for what, figure in (
            ("p50", percentile(ordered, 0.5)),
            ("p90", percentile(ordered, 0.9)),
            ("p99", percentile(ordered, 0.99)),
            ("max", ordered[-1]),
        )
    )
    print(f"  {name:<44}{found} ms")


def compare(flow: LargeFlow, seconds: float, mover: Mover | None) -> None:
    with (
        PeerProcess("copy", flow),
        PeerProcess("consume", flow) as consumer,
        ExporterProcess(
            flow.lab,
            flow={"canary": {"interval": INTERVAL}},
            granularity="partition" if mover else "flow",
        ) as exporter,
    ):
        exporter.next("arrived")
        while not exporter.next("cycle")["ready"]:
            pass
        if mover is not None:
            for _ in range(2):
                mover.move()
                exporter.next("cycle")
        start = time.time()
        end = start + seconds
        ours: dict[int, float] = {}
        cycles = 0
        moving = threading.Event()
        while time.time() < end:
            if mover is not None:
                mover.move()
            moving.wait(4.0 if mover else 1.0)
            for found in exporter.taken("arrived", "cycle"):
                if found["kind"] == "cycle":
                    cycles += 1
                elif found["at"] >= start:
                    ours.setdefault(found["sequence"], found["at"])
        theirs = consumer.arrivals()
        print(f"  {cycles} cycles in {seconds:.0f} s")
        print(f"  canary process {exporter.resident().get('canary', 0) / 1e6:.1f} MB resident")
    both = sorted(ours.keys() & theirs.keys())
    by_us = [(ours[n] - theirs[n][1]) * 1000 for n in both]
    by_them = [(theirs[n][0] - theirs[n][1]) * 1000 for n in both]
    differences = [(ours[n] - theirs[n][0]) * 1000 for n in both]
    print(f"  {len(both)} canaries seen by both, {len(ours)} by the exporter")
    line("latency by the exporter's canary", by_us)
    line("latency by the independent consumer", by_them)
    line("difference, without its sign", [abs(each) for each in differences])
    apart = abs(percentile(sorted(by_us), 0.99) - percentile(sorted(by_them), 0.99))
    middle = statistics.median(differences)
    print(
        f"  median difference {middle:+.2f} ms, p99 apart by {apart:.2f} ms (goal: {REACH_MS} ms)"
    )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument(
        "--topics", type=int, default=2000, help="topics with five partitions each"
    )
    arguments.add_argument("--seconds", type=float, default=40.0)
    arguments.add_argument("--peer", nargs=2, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.peer:
        role, clusters = chosen.peer
        source, target = json.loads(clusters)
        if role == "copy":
            copy(source, target)
        consume(target)
    print("one idle topic")
    with LargeFlow.start(Shape(topics=1), broker_heap=384) as flow:
        compare(flow, chosen.seconds, None)
    print(f"while the exporter cycles over {chosen.topics * 5:,} partitions that all change")
    with LargeFlow.start(Shape(topics=chosen.topics)) as flow:
        compare(flow, chosen.seconds, Mover(flow))


if __name__ == "__main__":
    main()
