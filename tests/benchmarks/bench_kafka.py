"""Cost of reading the end offsets of 10,000 partitions, compared with the bare library."""

import time
from collections.abc import Callable
from functools import partial

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as RawPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # re-exported without saying so

from mm2slo_core.topology import TopicPartition
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_lab.broker import Broker
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

TOPICS, PARTITIONS = 100, 100
ROUNDS = 5
CHUNKS = (2000, 1000, 500, 200)
YARDSTICK = "Consumer.offsets_for_times, 500 at once"
ALLOWED_RATIO = 1.3


def make_partitions(broker: Broker) -> list[TopicPartition]:
    names = [f"bench-{number}" for number in range(TOPICS)]
    for name in names:
        broker.admin.create_topic(name, PARTITIONS)
    return [TopicPartition(name, number) for name in names for number in range(PARTITIONS)]


def least(call: Callable[[], object]) -> tuple[float, float]:
    """CPU and wall seconds of the fastest round."""
    found = []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        found.append((time.process_time() - cpu, time.perf_counter() - wall))
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


def main() -> None:
    """Run all measurements with one broker."""
    topology = LabTopology(clusters=("us",), flows=(), engine=LabEngine.NONE, broker_heap=768)
    with Lab.start(topology) as lab:
        broker = lab.cluster("us")
        partitions = make_partitions(broker)
        end_offsets(broker, partitions)


if __name__ == "__main__":
    main()
