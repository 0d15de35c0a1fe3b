"""Time to read a million offset syncs from an internal topic.

The reader runs in its own process, so that its memory can be measured.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from functools import partial

from large_flow.record_sender import RecordSender
from process_figures import rss

from mm2slo_core.records.mirror_records import OffsetSync
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.readers.internal_topics_reader import InternalTopicsReader, Subscription
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.running_lab import Lab

TOPIC = "mm2-offset-syncs.eu.internal"
TOPICS, PARTITIONS = 2000, 5
REACH_SECONDS = 15.0


def produce(properties: dict[str, str], records: int) -> None:
    """Offset syncs of 10,000 partitions in turn, at irregular distances."""
    partitions = [
        TopicPartition(f"orders.events-{topic:04d}", number)
        for topic in range(TOPICS)
        for number in range(PARTITIONS)
    ]
    with RecordSender(properties) as sending:
        for n in range(records):
            round_, index = divmod(n, len(partitions))
            sync = OffsetSync(partitions[index], round_ * 200, round_ * 200 - round_ % 7)
            sending.send(TOPIC, sync.encode_value(), 0, key=sync.encode_key())


def read(properties: dict[str, str], records: int) -> None:
    """Read with the exporter's reader; prints time, CPU and memory."""
    problems: list[str] = []
    store = InternalsStore(
        flow_slug="us-to-eu",
        source_alias="us",
        source_connector="MirrorSourceConnector",
        heartbeat_connector="MirrorHeartbeatConnector",
        connectors=frozenset(),
        malformed=lambda kind, reason: problems.append(f"{kind} {reason}"),
    )
    before = rss()
    with ClusterClient("us", properties) as client:
        ready = threading.Event()
        syncs_topic = Subscription(
            TOPIC,
            CollectionStage.OFFSET_SYNCS,
            apply=partial(store.apply, InternalTopic.OFFSET_SYNCS),
            clear=partial(store.clear, InternalTopic.OFFSET_SYNCS),
            on_complete=ready.set,
        )
        reader = InternalTopicsReader(client, CollectionHealth())
        wall, cpu = time.perf_counter(), time.process_time()
        reader.follow(syncs_topic)
        ready.wait()
        took, spent = time.perf_counter() - wall, time.process_time() - cpu
        syncs = len(store.view(()).syncs)
        resident = rss()
        reader.stop()
    assert not problems, problems[:3]
    print(f"  {records:,} offset syncs of {syncs:,} partitions, read to ready")
    print(f"  wall        {took:8.1f} s    (goal: {REACH_SECONDS:.0f} s)")
    print(f"  CPU         {spent:8.1f} s    {records / spent:,.0f} records per second of CPU")
    print(f"  resident    {resident / 1e6:8.1f} MB   {before / 1e6:.1f} MB before")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--records", type=int, default=1_000_000)
    arguments.add_argument("--read", help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.read:
        read(json.loads(chosen.read), chosen.records)
        return
    topology = LabTopology(clusters=("us",), flows=(), engine=LabEngine.NONE)
    with Lab.start(topology) as lab:
        lab.cluster("us").admin.create_topic(TOPIC, 1, {"cleanup.policy": "compact"})
        properties = lab.cluster("us").librdkafka()
        produce(properties, chosen.records)
        for _ in range(2):
            subprocess.run(
                [
                    *(sys.executable, __file__, "--records", str(chosen.records)),
                    *("--read", json.dumps(properties)),
                ],
                check=True,
            )


if __name__ == "__main__":
    main()
