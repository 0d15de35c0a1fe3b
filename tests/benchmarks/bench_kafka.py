"""Cost of reading 10,000 partitions and a million records, compared with the bare library."""

import multiprocessing
import resource
import struct
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as RawPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # re-exported without saying so

from mm2slo_core.records.mirror_records import OffsetSync
from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.topic_tail import TopicTail
from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

TOPICS, PARTITIONS = 100, 100
ROUNDS = 5
CHANGES, TOPICS_PER_CHANGE = 200, 10
SYNCS = 1_000_000
CHUNKS = (2000, 1000, 500, 200)
YARDSTICK = "Consumer.offsets_for_times, 500 at once"
ALLOWED_RATIO = 1.3
SYNC_SECONDS = 15.0


def make_partitions(broker: Broker) -> list[TopicPartition]:
    names = [f"bench-{number}" for number in range(TOPICS)]
    for name in names:
        broker.admin.create_topic(name, PARTITIONS)
    return [TopicPartition(name, number) for name in names for number in range(PARTITIONS)]


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def least(call: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of the fastest round."""
    found = []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), cpu_seconds()
        call()
        found.append((cpu_seconds() - cpu, time.perf_counter() - wall))
    return min(found)


def end_offsets(broker: Broker, partitions: list[TopicPartition]) -> None:
    """End offsets must cost little more than bare requests of the best size."""
    properties = broker.librdkafka()
    consumer = Consumer({**properties, "group.id": "bench", "isolation.level": "read_uncommitted"})
    admin = AdminClient({**properties})
    raw = [RawPartition(topic, number, -1) for topic, number in partitions]

    def bare_admin() -> None:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped there
        futures = admin.list_offsets(dict.fromkeys(raw, latest), request_timeout=30)
        assert len([future.result().offset for future in futures.values()]) == len(raw)

    def bare_chunks(size: int) -> None:
        for start in range(0, len(raw), size):
            consumer.offsets_for_times(raw[start : start + size], timeout=30)

    with ClusterClient("us", properties) as client:
        ways: dict[str, Callable[[], object]] = {
            "Consumer.offsets_for_times, all at once": lambda: bare_chunks(len(raw)),
            **{
                f"Consumer.offsets_for_times, {size} at once": partial(bare_chunks, size)
                for size in CHUNKS
            },
            "AdminClient.list_offsets, all at once": bare_admin,
            "ClusterClient.end_offsets": lambda: client.end_offsets(partitions, timeout=30),
        }
        wait_for(lambda: not client.end_offsets(partitions).errors, "leaders of all partitions")
        measured = {name: least(call) for name, call in ways.items()}
        reading = client.end_offsets(partitions)
    consumer.close()
    assert len(reading.offsets) == TOPICS * PARTITIONS
    base, _wall = measured[YARDSTICK]
    print(f"\n{TOPICS * PARTITIONS} partitions, best of {ROUNDS}")
    for name, (cpu, wall) in measured.items():
        print(f"  {name:40} cpu {cpu:.3f} s  wall {wall:.3f} s  ratio {cpu / base:.2f}")
    assert measured["ClusterClient.end_offsets"][0] / base <= ALLOWED_RATIO


def first_records(broker: Broker, partitions: list[TopicPartition]) -> None:
    """Read the oldest record of every partition in one call."""
    producer = Producer({**broker.librdkafka(), "linger.ms": 50})
    for topic, number in partitions:
        producer.produce(topic, b"v", partition=number)
    assert producer.flush(60) == 0
    with ClusterClient("us", broker.librdkafka()) as client:
        ends = client.end_offsets(partitions).offsets
        ranges = {partition: (0, end) for partition, end in ends.items()}
        wall, cpu = time.perf_counter(), cpu_seconds()
        answer = client.first_records(ranges, timeout=60)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    assert len(answer.found) == TOPICS * PARTITIONS
    print(f"\nfirst records of {len(answer.found)} partitions: cpu {cpu:.2f} s  wall {wall:.2f} s")


def write_offset_syncs(properties: dict[str, str], topic: str) -> None:
    producer = Producer({**properties, "linger.ms": 20, "queue.buffering.max.messages": 2 * SYNCS})
    for number in range(SYNCS):
        name = b"topic-%03d" % (number % 500)
        key = struct.pack(">h", len(name)) + name + struct.pack(">i", number % 16)
        producer.produce(topic, struct.pack(">qq", number * 100, number * 90), key)
    assert producer.flush(120) == 0


def growth(broker: Broker) -> None:
    """Memory that librdkafka keeps for every topic requested once."""
    names = [f"grow-{number}" for number in range(CHANGES * TOPICS_PER_CHANGE)]
    for name in names:
        broker.admin.create_topic(name, 1)
    with ClusterClient("us", broker.librdkafka()) as client:
        client.end_offsets([TopicPartition(names[0], 0)])
        before = resident_megabytes()
        for first in range(0, len(names), TOPICS_PER_CHANGE):
            wanted = [TopicPartition(n, 0) for n in names[first : first + TOPICS_PER_CHANGE]]
            assert len(client.end_offsets(wanted).offsets) == TOPICS_PER_CHANGE
        grown = resident_megabytes() - before
    each = grown * 1e6 / len(names)
    print(f"\n{len(names)} topics, {CHANGES} readings: +{grown:.2f} MB, {each:.0f} B per topic")


def offset_syncs(broker: Broker) -> None:
    """Read and decode a million offset syncs with a tail."""
    topic = "mm2-offset-syncs.bench.internal"
    broker.admin.create_topic(topic, 1)
    # Written by another process, because its buffers would hide the reader's memory.
    writer = multiprocessing.get_context("spawn").Process(
        target=write_offset_syncs, args=(broker.librdkafka(), topic)
    )
    writer.start()
    writer.join()
    assert writer.exitcode == 0
    before = peak = resident_megabytes()
    with ClusterClient("us", broker.librdkafka()) as client:
        tail = TopicTail(client, topic)
        decoded, wall, cpu = 0, time.perf_counter(), cpu_seconds()
        while not tail.caught_up:
            batch = tail.poll(10_000, 1.0)
            for record in batch.records:
                OffsetSync.decode(record.key, record.value)
            decoded += len(batch.records)
            peak = max(peak, resident_megabytes())
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        tail.close()
    assert decoded == SYNCS
    print(
        f"\n{SYNCS} offset syncs read and decoded: cpu {cpu:.2f} s  wall {wall:.2f} s  "
        f"memory +{peak - before:.0f} MB"
    )
    assert wall < SYNC_SECONDS


def main() -> None:
    """Run all measurements with one broker."""
    topology = LabTopology(clusters=("us",), flows=(), engine=LabEngine.NONE, broker_heap=768)
    with Lab.start(topology) as lab:
        broker = lab.cluster("us")
        partitions = make_partitions(broker)
        end_offsets(broker, partitions)
        first_records(broker, partitions)
        offset_syncs(broker)
        growth(broker)


if __name__ == "__main__":
    main()
