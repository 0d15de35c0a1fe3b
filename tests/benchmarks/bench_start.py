"""Time until a flow is ready after a start, against the size of its watermark timeline.

The source has a backlog older than the timeline, so that all of it could be of use.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from confluent_kafka import Producer

from mm2slo_cli.exporter import run_exporter
from mm2slo_core.config import load_config
from mm2slo_core.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import Flow
from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab import Lab, LabTopology
from mm2slo_lab.lab_topology import Engine

FLOW = Flow("us", "eu")
TIMELINE = "mm2slo.watermarks.internal"
TOPICS, PARTITIONS, INTERVAL = 100, 100, 5.0
STARTS = 3
GOAL_SECONDS = 15.0


def poll(at: float) -> list[tuple[bytes, bytes]]:
    """Keys and values of a poll: 10,000 moving partitions, but *orders* has not moved."""
    found = []
    for topic in ("orders", *(f"team.orders-{number:04d}" for number in range(1, TOPICS))):
        ends = tuple(int(at) * 10 + number for number in range(PARTITIONS))
        for side in Side:
            record = WatermarkRecord(
                FLOW,
                side,
                topic,
                None,
                "read_uncommitted",
                PollTimes(at, at + 0.2, at - INTERVAL, at - INTERVAL + 0.2),
                tuple(range(PARTITIONS)),
                (1,) * PARTITIONS if topic == "orders" else ends,
            )
            found.append((record.encode_key(), record.encode_value()))
    return found


def write_timeline(properties: dict[str, str], size: float) -> None:
    """Write about *size* bytes of polls up to now."""
    producer = Producer({**properties, "linger.ms": 50, "batch.size": 1_000_000})
    now = time.time()
    rounds = int(size / sum(len(key) + len(value) for key, value in poll(now)))
    for number in range(rounds, 0, -1):
        at = now - number * INTERVAL
        for key, value in poll(at):
            while True:
                try:
                    producer.produce(TIMELINE, value, key, timestamp=int(at * 1000))
                    break
                except BufferError:
                    producer.poll(0.1)
    producer.flush()


def start(lab: Lab) -> tuple[float, float, float]:
    """Seconds until ready, until the history was read, and how many it reaches back."""
    config = load_config(
        lab.config_yaml(
            exporter={"read_only": True, "poll_interval": "1s", "listen": "127.0.0.1:0"}
        )
    )
    started = time.time()
    with run_exporter(lambda: config, [FLOW.label]) as (service, _):
        while not service.readiness().ready:
            time.sleep(0.02)
        ready = time.time() - started
        while any(thread.name.startswith("history-") for thread in threading.enumerate()):
            time.sleep(0.1)
        done = time.time() - started
        (report,) = service.reports()
        return ready, done, started - (report.history_since or started)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--megabytes", type=float, nargs="+", default=[0, 100, 1000])
    chosen = arguments.parse_args()
    topology = LabTopology(flows=(FLOW,), engine=Engine.NONE)
    print(f"medians of {STARTS} starts; goal: ready within {GOAL_SECONDS:.0f} s")
    for megabytes in chosen.megabytes:
        with Lab.start(topology) as lab:
            us, eu = lab.cluster("us"), lab.cluster("eu")
            us.admin.create_topic("orders", PARTITIONS)
            produce(us.librdkafka(), "orders", Load(10_000))
            eu.admin.create_topic("us.orders", PARTITIONS)
            eu.admin.create_topic(TIMELINE, 1)
            write_timeline(eu.librdkafka(), megabytes * 1e6)
            ready, done, back = map(
                statistics.median, zip(*(start(lab) for _ in range(STARTS)), strict=True)
            )
            print(
                f"  timeline {megabytes:7.0f} MB: ready after {ready:5.2f} s; read back "
                f"{back / 60:6.1f} min after {done:5.1f} s"
            )


if __name__ == "__main__":
    main()
