"""Time to read 2,000 consumer groups of a cluster with a round trip of 100 ms."""

import asyncio
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as RawPartition
from confluent_kafka.admin import AdminClient

from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.readers.cluster_reader import ClusterReader, ReadIntervals
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import HOST, free_ports, wait_for
from mm2slo_lab.running_lab import Lab


class DelayingProxy:
    """Forwards *port* to a broker's port; `round_trip` (seconds) applies to data from then on.

    Requests in flight are delayed together, not one after the other.
    """

    def __init__(self, port: int, broker: int) -> None:
        self.round_trip = 0.0
        self._port, self._broker = port, broker
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Close all connections."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connect, HOST, self._port)
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_broker = await asyncio.open_connection(HOST, self._broker)
        for origin, to in ((reader, to_broker[1]), (to_broker[0], writer)):
            task = asyncio.create_task(self._pass(origin, to))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, origin: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        try:
            while data := await origin.read(65_536):
                self._loop.call_later(self.round_trip / 2, to.write, data)
        finally:
            self._loop.call_later(self.round_trip / 2, to.close)


@contextmanager
def delaying_proxy(port: int, broker: int) -> Iterator[DelayingProxy]:
    """Run a proxy until the block ends."""
    proxy = DelayingProxy(port, broker)
    try:
        yield proxy
    finally:
        proxy.close()


GROUPS, PARTITIONS = 2000, 10
ROUND_TRIP = 0.1
ALLOWED_SECONDS = 120.0
INTERVALS = ReadIntervals(topics=5.0, topic_configs=300.0, groups=15.0, members=300.0)


class Everything:
    def topics_changed(self, _alias: str) -> None:
        pass

    def topics_of(self, _alias: str, existing: Iterable[str]) -> list[str]:
        return sorted(existing)

    def groups_of(self, _alias: str, existing: Iterable[str]) -> list[str]:
        return sorted(existing)


def commit_offsets(properties: Mapping[str, str]) -> None:
    admin = AdminClient({**properties})
    committed = [RawPartition("orders", number, 0) for number in range(PARTITIONS)]
    groups = [f"app-{number:04}" for number in range(GROUPS)]
    for first in range(0, GROUPS, 100):
        requested = [
            admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, committed)])
            for group in groups[first : first + 100]
        ]
        for futures in requested:
            for future in futures.values():
                future.result(30)


def is_read(reader: ClusterReader, since: float) -> bool:
    """Whether all groups were read since then."""
    read_at = reader.view.groups_read_at.values()
    return len(read_at) == GROUPS and min(read_at) >= since


def main() -> None:
    (port,) = free_ports(1)
    listener = {"advertised.listeners": f"CLIENT://{HOST}:{port}"}
    topology = LabTopology(
        clusters=("us",), flows=(), engine=LabEngine.NONE, broker_properties=listener
    )
    properties = {"bootstrap.servers": f"{HOST}:{port}"}
    with Lab.start(topology) as lab, delaying_proxy(port, lab.cluster("us").ports.client) as proxy:
        lab.cluster("us").admin.create_topic("orders", PARTITIONS)
        commit_offsets(properties)
        proxy.round_trip = ROUND_TRIP
        with ClusterClient("us", properties) as client:
            health = CollectionHealth()
            reader = ClusterReader(client, INTERVALS, Everything(), health)
            since = time.time()
            reader.start()
            print(f"\n{GROUPS} groups of {PARTITIONS} partitions, round trip {ROUND_TRIP:.1f} s")
            try:
                for name in ("first", "second"):
                    wait_for(
                        partial(is_read, reader, since),
                        f"the {name} round of groups",
                        ALLOWED_SECONDS,
                    )
                    seconds = time.time() - since
                    print(f"  {name} round: {seconds:.1f} s (allowed: {ALLOWED_SECONDS:.0f} s)")
                    since = max(reader.view.groups_read_at.values())
            finally:
                reader.stop()
            print(f"  failed reads: {health.report().errors}")
            print(f"  requests: {dict(client.request_totals())}")


if __name__ == "__main__":
    main()
