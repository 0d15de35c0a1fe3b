"""Cost of reading and writing the arrivals of 1,000 partitions: CPU, bytes, bracket.

One broker; growth is added to the end offsets that it returns, so that no load is produced.
"""

import argparse
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import ClusterView, InternalsView, Observation
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.timeline.arrival_poller import ArrivalPoller, FlowArrivals
from mm2slo_exporter.timeline.flow_writer import ClusterWriter
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.partition_offsets import Isolation, OffsetReading
from mm2slo_kafka.record_producer import DeliveryResult, RecordProducer
from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.running_lab import Lab

PARTITIONS = 1_000
SHAPES = (1_000, 200, 20)
"""Topics of the partitions."""
BATCHING = {"linger.ms": "100", "compression.type": "lz4", "batch.size": "262144"}
ALLOWED_SHARE = 0.05


class GrowingReader:
    """Real reads; each partition then has up to 20 more records than the read before."""

    alias = "eu"

    def __init__(self, client: ClusterClient, *, moving: bool) -> None:
        self._client = client
        self._moving = moving
        self._growth = dict.fromkeys(range(PARTITIONS), 10**7)
        self.reads = 0

    def end_offsets(
        self,
        partitions: Sequence[TopicPartition],
        isolation: Isolation = "read_uncommitted",
        timeout: float = 10.0,
    ) -> OffsetReading:
        """See `ClusterClient`."""
        self.reads += 1
        found = self._client.end_offsets(partitions, isolation, timeout)
        if not self._moving:
            return found
        offsets = {}
        for number, (partition, end) in enumerate(found.offsets.items()):
            self._growth[number] += random.randint(1, 20)
            offsets[partition] = end + self._growth[number]
        return replace(found, offsets=offsets)

    def start_offsets(
        self, partitions: Sequence[TopicPartition], timeout: float = 10.0
    ) -> OffsetReading:
        """See `ClusterClient`."""
        return self._client.start_offsets(partitions, timeout)


class ArrivalsTopic:
    """Writes arrivals as the exporter does."""

    def __init__(self, producer: RecordProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic

    def can_write(self, stage: CollectionStage) -> bool:
        return stage is CollectionStage.ARRIVALS

    def send(
        self,
        stage: CollectionStage,
        key: bytes,
        value: bytes | None,
        on_delivery: Callable[[DeliveryResult], None],
    ) -> None:
        """See `ClusterWriter`."""
        del stage
        self._producer.send(self._topic, key=key, value=value, on_delivery=on_delivery)


def observed(topics: int) -> Observation:
    """A round of a flow whose copies are *topics*."""
    names = [f"copy-{topics}-{number}" for number in range(topics)]
    return Observation(
        at=time.time(),
        plan=FlowPlan(tuple(TopicPair(name, name, TopicRole.DATA) for name in names)),
        source=ClusterView(),
        target=ClusterView(
            topics=dict.fromkeys(names, PARTITIONS // topics),
            topic_ids=dict.fromkeys(names, "x" * 22),
        ),
        internals=InternalsView(),
        source_offsets=None,
        target_offsets=None,
        source_readable=True,
        target_readable=True,
    )


def measure(broker: Broker, topics: int, seconds: float, *, moving: bool) -> None:
    arrivals = f"arrivals-{topics}-{moving}"
    broker.admin.create_topic(arrivals, 1)
    client = ClusterClient("eu", broker.librdkafka())
    client.topics()
    reader = GrowingReader(client, moving=moving)
    producer = RecordProducer(client.handles, settings=BATCHING)
    poller = ArrivalPoller(
        reader,
        cast("ClusterWriter", ArrivalsTopic(producer, arrivals)),
        CollectionHealth(),
        poll_interval=5.0,
    )
    flow = FlowArrivals(Flow("us", "eu"))
    flow.observe(observed(topics))
    poller.add(flow)
    threading.Event().wait(3.0)
    cpu, reads, at = time.process_time(), reader.reads, time.monotonic()
    while time.monotonic() - at < seconds:
        producer.poll(1.0)
    cpu, reads, elapsed = time.process_time() - cpu, reader.reads - reads, time.monotonic() - at
    bracket = poller.bracket or 0.0
    poller.stop()
    producer.close()
    client.close()
    log = (broker._log_directory / f"{arrivals}-0").glob("*.log")
    size = sum(each.stat().st_size for each in log)
    line = (
        f"{topics:>5} topics, {'moving' if moving else 'at rest'}: {reads / elapsed:.2f} reads/s, "
        f"{cpu / elapsed:.1%} of a core (goal {ALLOWED_SHARE:.0%}), bracket {bracket * 1000:.0f} ms"
    )
    if moving:
        written = (reader.reads - 1) * PARTITIONS
        line += f", {size / written:.1f} bytes per partition and read"
    print(line, flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=30.0)
    seconds = options.parse_args().seconds
    with Lab.start(LabTopology(clusters=("eu",), flows=(), engine=LabEngine.NONE)) as lab:
        broker = lab.cluster("eu")
        for topics in SHAPES:
            for name in range(topics):
                broker.admin.create_topic(f"copy-{topics}-{name}", PARTITIONS // topics)
            for moving in (False, True):
                measure(broker, topics, seconds, moving=moving)


if __name__ == "__main__":
    main()
