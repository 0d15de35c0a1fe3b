"""Threads, CPU and memory of the exporter with 100 flows of 100 partitions over four clusters.

The four clusters are one real cluster of three brokers; they differ in the order of their bootstrap
servers, so that nothing is shared among them. Each has three aliases: four aliases have only twelve
flows. The flows' topics have their own names, and a plain consumer copies each canary once.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import cast

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without saying so
from large_flow.large_flow import await_leaders
from large_flow.record_sender import RecordSender, append
from process_figures import cpu_seconds, processes, rss, threads, waited_seconds

from mm2slo_core.file_syntax import dump_properties
from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.records.mirror_records import OffsetSync
from mm2slo_core.replication_policy import DefaultPolicy, internal_topics
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_lab.broker import _kafka_uuid, formatted_log, write_log_directory
from mm2slo_lab.broker_properties import server_properties
from mm2slo_lab.kafka_runtime import Runtime
from mm2slo_lab.lab_topology import DEFAULT_VERSION, LabSecurity
from mm2slo_lab.managed_process import HOST, ManagedProcess, accepts, free_ports

_SETTINGS = {"log.retention.check.interval.ms": "300000", "log.index.size.max.bytes": "65536"}


@contextmanager
def start_brokers(count: int, heap: int) -> Iterator[list[str]]:
    """`host:port` of each broker; the first one is the controller too. *heap* is in MiB."""
    root = Path(tempfile.mkdtemp(prefix="mm2slo-brokers-"))
    runtime = Runtime.prepare(DEFAULT_VERSION, root)
    controller, *clients = free_ports(count + 1)
    cluster_id = _kafka_uuid()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        for number, port in enumerate(clients, 1):
            name, folder = f"broker-{number}", root / f"broker-{number}"
            properties = server_properties(
                port=port,
                controller_port=controller,
                log_directory=folder / "data",
                security=LabSecurity.PLAINTEXT,
                tls=None,
                overrides={**_SETTINGS, "node.id": str(number)},
            )
            if number > 1:
                properties["process.roles"] = "broker"
                properties["listeners"] = properties["advertised.listeners"]
            folder.mkdir()
            (folder / "server.properties").write_text(dump_properties(properties))
            template = formatted_log(runtime, DEFAULT_VERSION)
            write_log_directory(folder / "data", number, template, cluster_id)
            spec = runtime.spec(name, heap, "kafka.Kafka", str(folder / "server.properties"))
            broker = ManagedProcess(spec)
            stack.callback(broker.stop)
            broker.start()
            broker.wait_until(partial(accepts, port), "serving clients")
        yield [f"{HOST}:{port}" for port in clients]


CLUSTERS = 4
REACH_THREADS, REACH_CORES = 600, 1.0
FIGURES = (
    "mm2_flow_lag_records",
    "mm2_canary_late_total",
    "mm2_canary_lost_total",
)
OBSERVED = "mm2_flow_observed_timestamp_seconds"
SKIPPED = "mm2_exporter_skipped_rounds_total"
_CHUNK = 25
_READY_SECONDS = 600.0


def chosen_flows(count: int) -> list[Flow]:
    """Flows between aliases of different clusters; an alias is `c<cluster><letter>`."""
    aliases = [f"c{number}{letter}" for letter in "abc" for number in range(CLUSTERS)]
    pairs = [Flow(*pair) for pair in permutations(aliases, 2) if pair[0][:2] != pair[1][:2]]
    return sorted(pairs, key=lambda flow: (flow.source[2], flow.target[2]))[:count]


def topic_of(flow: Flow) -> str:
    return f"orders-{flow.slug}"


def create_topics(servers: list[str], flows: list[Flow], partitions: int) -> None:
    compacted = {"heartbeats"}
    for flow in flows:
        own = internal_topics(flow, DefaultPolicy())
        compacted |= {own.offset_syncs.topic, own.checkpoints.topic, own.remote_heartbeats.topic}
        compacted |= {own.connect_offsets.topic, own.connect_status.topic}
        compacted.add(own.connect_configs.topic)
    new = [NewTopic(name, 1, 1, config={"cleanup.policy": "compact"}) for name in sorted(compacted)]
    for flow in flows:
        data = topic_of(flow)
        new += [NewTopic(name, partitions, 1) for name in (data, f"{flow.source}.{data}")]
    admin = AdminClient({"bootstrap.servers": ",".join(servers), "log_level": 2})
    for start in range(0, len(new), _CHUNK):
        created = admin.create_topics(new[start : start + _CHUNK], operation_timeout=120)
        for future in created.values():
            future.result(180)


def seed(servers: list[str], flows: list[Flow], partitions: int) -> None:
    """A record, its copy, offset sync and commit for each partition."""
    connection = {"bootstrap.servers": ",".join(servers)}
    topics = [
        name for flow in flows for name in (topic_of(flow), f"{flow.source}.{topic_of(flow)}")
    ]
    await_leaders(connection, topics, partitions)
    metadata = AdminClient({**connection, "log_level": 2}).list_topics(timeout=60)
    by_leader = defaultdict(list)
    for topic in topics:
        for number, each in metadata.topics[topic].partitions.items():
            by_leader[each.leader].append((topic, number))
    for leader, led in by_leader.items():
        append({"bootstrap.servers": f"{HOST}:{metadata.brokers[leader].port}"}, led)
    with RecordSender(connection) as sender:
        for flow in flows:
            own, data = internal_topics(flow, DefaultPolicy()), topic_of(flow)
            for number in range(partitions):
                partition = TopicPartition(data, number)
                sync = OffsetSync(partition, 0, 0)
                sender.send(own.offset_syncs.topic, sync.encode_value(), key=sync.encode_key())
                commit = SourceOffset("MirrorSourceConnector", flow.source, partition, 0)
                topic = own.connect_offsets.topic
                sender.send(topic, commit.encode_value(), key=commit.encode_key())


def copy_canaries(servers: list[str], stopping: threading.Event) -> None:
    """Copy each canary to the heartbeats topic of its flow."""
    connection = {"bootstrap.servers": ",".join(servers), "log_level": 2}
    consumer = Consumer({**connection, "group.id": "copy", "auto.offset.reset": "earliest"})
    producer = Producer({**connection, "linger.ms": 0})
    consumer.subscribe(["heartbeats"])
    while not stopping.is_set():
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            headers = cast("list[tuple[str, bytes]]", message.headers())
            source = dict(headers)["mm2slo-flow"].decode().partition("->")[0]
            producer.produce(
                f"{source}.heartbeats",
                message.value(),
                message.key(),
                headers=[*headers],
                timestamp=message.timestamp()[1],
            )
        producer.poll(0)
    consumer.close()
    producer.flush(5)


def configuration(servers: list[str], flows: list[Flow], port: int) -> str:
    aliases = {alias for flow in flows for alias in (flow.source, flow.target)}
    orders = list(permutations(servers))
    clusters = {
        alias: {"bootstrap_servers": list(orders[int(alias[1])])} for alias in sorted(aliases)
    }
    configured = [{"flow": flow.label, "topics": [topic_of(flow)]} for flow in flows]
    exporter = {"listen": f"{HOST}:{port}", "granularity": "topic"}
    return json.dumps({"clusters": clusters, "flows": configured, "exporter": exporter})


def values(page: str, name: str) -> dict[str, float]:
    """The values of a metric's series, by flow."""
    series = [line for line in page.splitlines() if line.startswith(f"{name}{{")]
    return {line.split('flow="')[1].split('"')[0]: float(line.split()[-1]) for line in series}


def scrape(port: int, path: str) -> str:
    with urllib.request.urlopen(f"http://{HOST}:{port}{path}", timeout=30) as answer:
        return str(answer.read().decode())


def await_ready(port: int, flows: int) -> float:
    """Wait until all flows are evaluated and their canaries arrive; returns seconds."""
    started = time.monotonic()
    while time.monotonic() - started < _READY_SECONDS:
        with contextlib.suppress(OSError):
            page = scrape(port, "/metrics")
            arrived = [
                line
                for line in page.splitlines()
                if line.startswith("mm2_canary_received_total{") and float(line.split()[-1]) > 0
            ]
            if len(arrived) == flows:
                scrape(port, "/readyz")
                return time.monotonic() - started
        time.sleep(1)
    raise TimeoutError(f"not ready in {_READY_SECONDS:.0f} s")


def measure(pid: int, port: int, seconds: float) -> None:
    held = processes(pid)
    everything = [each for pids in held.values() for each in pids]
    before = {kind: cpu_seconds(pids) for kind, pids in held.items()}
    waited = waited_seconds(everything)
    skipped = values(scrape(port, "/metrics"), SKIPPED)
    ages: list[float] = []
    missing: list[str] = []
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        time.sleep(5)
        page, now = scrape(port, "/metrics"), time.time()
        observed = values(page, OBSERVED)
        ages.append(max(now - at for at in observed.values()))
        for flow in skipped.keys() - values(page, FIGURES[0]).keys():
            age = now - observed[flow] if flow in observed else float("nan")
            missing.append(f"{time.monotonic() - started:.0f} s: {flow} observed {age:.0f} s ago")
    minutes = (time.monotonic() - started) / 60
    counts = {kind: sum((threads(each) for each in pids), Counter()) for kind, pids in held.items()}
    for kind, pids in held.items():
        used = (cpu_seconds(pids) - before[kind]) / minutes
        memory = sum(map(rss, pids)) / 1e6
        print(
            f"  {kind:<10} {len(pids)} processes {counts[kind].total():5d} threads "
            f"{used:6.1f} s CPU per minute {memory:7.0f} MB"
        )
    total = sum(count.total() for count in counts.values())
    cores = (cpu_seconds(everything) - sum(before.values())) / minutes / 60
    print(f"  threads {total} (goal: {REACH_THREADS}), cores {cores:.2f} (goal: {REACH_CORES:g})")
    for kind, names in counts.items():
        print(f"    {kind}: " + ", ".join(f"{name} {n}" for name, n in names.most_common(12)))
    page = scrape(port, "/metrics")
    waiting = (waited_seconds(everything) - waited) / minutes
    print(f"  threads waited {waiting:.0f} s per minute for a core; load {os.getloadavg()[0]:.0f}")
    missed = [count - skipped[flow] for flow, count in values(page, SKIPPED).items()]
    print(
        f"  rounds skipped: {sum(missed):g} of about {len(missed) * minutes * 12:.0f}, "
        f"at most {max(missed):g} of a flow"
    )
    ordered = sorted(ages)
    print(
        f"  age of the oldest flow in {len(ages)} scrapes: median {ordered[len(ages) // 2]:.1f} s, "
        f"highest {ordered[-1]:.1f} s; flows without lag: {missing or 'none'}"
    )
    for name in FIGURES:
        found = values(page, name)
        print(f"  {name}: {len(found)} flows, sum {sum(found.values()):g}")


def messages(log: Path) -> dict[str, int]:
    """Warnings and errors by their start, most frequent first."""
    found = Counter[str]()
    for line in log.read_text().splitlines():
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if entry["level"] in {"WARNING", "ERROR"}:
                found[f"{entry['level']} {entry['message'][:100]}"] += 1
    return dict(found.most_common(8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flows", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    flows = chosen_flows(options.flows)
    stopping = threading.Event()
    with (
        start_brokers(3, heap=1024) as servers,
        tempfile.NamedTemporaryFile("w") as file,
        tempfile.NamedTemporaryFile("w") as log,
    ):
        create_topics(servers, flows, options.partitions)
        seed(servers, flows, options.partitions)
        copier = threading.Thread(target=copy_canaries, args=(servers, stopping))
        copier.start()
        (port,) = free_ports(1)
        file.write(configuration(servers, flows, port))
        file.flush()
        command = [sys.executable, "-m", "mm2slo_cli", "exporter", "--config", file.name]
        exporter = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            print(f"{len(flows)} flows of {options.partitions} partitions", flush=True)
            print(f"  all canaries arrive after {await_ready(port, len(flows)):.0f} s", flush=True)
            measure(exporter.pid, port, options.seconds)
            print(f"  messages: {messages(Path(log.name))}")
        finally:
            exporter.terminate()
            exporter.wait(60)
            stopping.set()
            copier.join()


if __name__ == "__main__":
    main()
