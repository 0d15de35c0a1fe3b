"""MirrorMaker 2 on Kafka Connect, as with Strimzi: other topic names, no reverse heartbeats."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import flow_checks
import pytest
from exporter_watch import Scrape, Watch, counters_never_decreased

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.managed_process import free_ports, wait_for
from mm2slo_lab.mirror_processes import ConnectWorker
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
FLOW = US_EU.label
TOPIC, COPY = "orders", "us.orders"
SOURCE = "us->eu.MirrorSourceConnector"
CHECKPOINT = "us->eu.MirrorCheckpointConnector"
HEARTBEAT = "us->eu.MirrorHeartbeatConnector"
SETTINGS = {
    "topics_exclude": [r"mm2.*\.internal", r".*\.replica", "__.*", "connect-.*"],
    "offset_flush_interval": "1s",
    "checkpoint_interval": "1s",
    "stall_after": "5s",
    "canary": {"deadline": "10s", "latency_tiers": ["5s", "10s"]},
    "connect": {
        "offsets_topic": "connect-offsets",
        "status_topic": "connect-status",
        "configs_topic": "connect-configs",
        "source_connector": SOURCE,
        "checkpoint_connector": CHECKPOINT,
        "heartbeat_connector": HEARTBEAT,
    },
}


@dataclass(frozen=True)
class OnConnect:
    """Two clusters, and one Connect worker beside the target."""

    lab: Lab
    worker: ConnectWorker


@pytest.fixture(scope="module")
def connect(lab_progress: Progress) -> Iterator[OnConnect]:
    topology = LabTopology(flows=(US_EU,), engine=LabEngine.NONE)
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, TOPIC): (3, 1_000)}) as lab:
        (port,) = free_ports(1)
        topology = replace(lab.topology, engine=LabEngine.CONNECT)
        brokers = {alias: lab.cluster(alias) for alias in topology.clusters}
        worker = ConnectWorker("eu", port, topology, brokers, lab.runtime)
        try:
            worker.start()
            yield OnConnect(lab, worker)
        finally:
            worker.process.kill()


@pytest.fixture(scope="module")
def seen(connect: OnConnect) -> Iterator[Watch]:
    # The source has no heartbeats, so the exporter creates the topic for its canaries.
    assert "heartbeats" not in connect.lab.cluster("us").admin.topics()
    with flow_checks.watch_flows(connect.lab, "connect", US_EU, settings=SETTINGS) as watching:
        yield watching


def state_of(scrape: Scrape, connector: str, task: int | None = None) -> set[str]:
    name = "mm2_connector_state" if task is None else "mm2_task_state"
    labels = {"flow": FLOW, "connector": connector} | ({} if task is None else {"task": str(task)})
    return {dict(found)["state"] for found, on in scrape.values(name, **labels).items() if on}


def tasks(scrape: Scrape, connector: str) -> set[str]:
    return set(scrape.by("task", "mm2_task_state", flow=FLOW, connector=connector))


def test_lag_of_idle_flow_is_exact(connect: OnConnect, seen: Watch) -> None:
    at_rest = flow_checks.until_copied(connect.lab, seen, US_EU, TOPIC, copy=COPY)
    assert flow_checks.position_qualities(at_rest, US_EU, TOPIC) == {"live"}
    assert flow_checks.read_numbers(connect.lab, US_EU, COPY) == list(range(1_000))
    assert at_rest.value("mm2_flow_lag_records", flow=FLOW) == 0


def test_states_equal_those_of_connect_rest_api(connect: OnConnect, seen: Watch) -> None:
    # Connect reassigns tasks because of the new heartbeats topic.
    wait_for(lambda: set(connect.worker.states().values()) == {"RUNNING"}, "running tasks")
    by_rest = connect.worker.states()
    scrape = seen.until(
        lambda s: all(
            state_of(s, task.rpartition("-")[0], int(task.rpartition("-")[2])) == {"running"}
            for task in by_rest
        ),
        "running tasks in metrics",
    )
    for connector in (SOURCE, CHECKPOINT, HEARTBEAT):
        assert state_of(scrape, connector) == {"running"}
        assert tasks(scrape, connector) == {
            task.rpartition("-")[2] for task in by_rest if task.rpartition("-")[0] == connector
        }
        assert all(
            state_of(scrape, connector, int(n)) == {"running"} for n in tasks(scrape, connector)
        )
    assert tasks(scrape, SOURCE) == {"0", "1"}


def test_every_partition_has_task(seen: Watch) -> None:
    def topics(scrape: Scrape) -> set[str]:
        return set(scrape.by("topic", "mm2_topic_info", flow=FLOW))

    # Canaries create the heartbeats topic, which MirrorMaker 2 finds at its next refresh.
    settled = seen.until(
        lambda s: (
            topics(s) >= {TOPIC, "heartbeats"}
            and set(s.values("mm2_unassigned_partitions", flow=FLOW).values()) == {0}
            and set(s.values("mm2_topic_missing", flow=FLOW).values()) == {0}
        ),
        "each topic to be replicated and each partition assigned",
    )
    assert topics(settled) == {TOPIC, "heartbeats"}


def test_group_at_end_offsets_is_ready(connect: OnConnect, seen: Watch) -> None:
    commits = flow_checks.commit_end_offsets(connect.lab, US_EU, TOPIC, "readers")
    ready = flow_checks.until_ready_to_fail_over(seen, US_EU, "readers", TOPIC)
    # At most the distance of two offset syncs (offset.lag.max) in each partition.
    upper = ready.value("mm2_failover_redelivery_records", group="readers", bound="upper")
    assert upper is not None
    assert 0 <= upper <= 100 * len(commits)
    age = ready.value("mm2_checkpoint_age_seconds", flow=FLOW, group="readers")
    assert age is not None
    assert 0 <= age < 60


def test_canaries_arrive_without_heartbeats(connect: OnConnect, seen: Watch) -> None:
    scrape = flow_checks.until_canaries(seen, US_EU, 10)
    assert scrape.value("mm2_heartbeats_present", flow=FLOW) == 0
    assert scrape.values("mm2_heartbeat_age_seconds", flow=FLOW) == {}
    assert connect.lab.cluster("us").admin.topic_config("heartbeats", "cleanup.policy") == "compact"
    # Canaries of the first seconds are late, until MirrorMaker 2 finds the new topic.
    good, total, unknown = scrape.sli(FLOW, "availability")
    assert unknown == 0
    assert good >= 10
    assert total - good == flow_checks.canary_value(scrape, US_EU, "late_total") <= 10


def test_paused_connector_is_stopped_flow(connect: OnConnect, seen: Watch) -> None:
    lab, path = connect.lab, f"/connectors/{SOURCE.replace('>', '%3E')}"
    start = flow_checks.values_by_partition(
        seen.scrapes[-1], "mm2_replicated_source_offset", US_EU, TOPIC
    )
    connect.worker.rest("PUT", f"{path}/pause")
    seen.until(lambda s: state_of(s, SOURCE) == {"paused"}, "the pause")
    flow_checks.send(lab, US_EU, TOPIC, 500, first=1_000)
    paused = flow_checks.until_lag(lab, seen, US_EU, TOPIC, copied=start)
    assert paused.value("mm2_flow_lag_records", flow=FLOW) == 500
    assert state_of(paused, SOURCE, 0) == {"paused"}
    seen.until(lambda s: s.state(FLOW) == "stopped", "the stop")
    connect.worker.rest("PUT", f"{path}/resume")
    flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    assert flow_checks.read_numbers(lab, US_EU, COPY) == list(range(1_500))
    seen.until(lambda s: s.state(FLOW) in {"running", "idle"}, "the flow to run")


def test_failed_task_is_reported_with_its_partitions(connect: OnConnect, seen: Watch) -> None:
    lab, eu = connect.lab, connect.lab.cluster("eu")
    eu.admin.set_topic_configs(COPY, {"max.message.bytes": "20000"})
    too_large = Load(1, first=1_500, value_size=100_000, partition=0)
    before = flow_checks.end_offsets(lab.cluster("us").librdkafka(), TOPIC)
    produce(lab.cluster("us").librdkafka(), TOPIC, too_large)
    failed = seen.until(
        lambda s: [n for n in tasks(s, SOURCE) if state_of(s, SOURCE, int(n)) == {"failed"}],
        "a failed task",
    )
    by_rest = {task for task, state in connect.worker.states().items() if state == "FAILED"}
    assert {
        f"{SOURCE}-{n}" for n in ("0", "1") if state_of(failed, SOURCE, int(n)) == {"failed"}
    } == by_rest
    assert len(by_rest) == 1
    assert state_of(failed, SOURCE) == {"running"}
    stalled = seen.until(
        lambda s: s.value("mm2_partition_stalled", flow=FLOW, topic=TOPIC, partition="0") == 1,
        "the stall",
    )
    lags = flow_checks.values_by_partition(stalled, "mm2_replication_lag_records", US_EU, TOPIC)
    assert lags == {**dict.fromkeys(before, 0), "0": 1}

    eu.admin.set_topic_configs(COPY, {"max.message.bytes": None})
    connect.worker.restart_connector(SOURCE)
    flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    assert set(flow_checks.read_numbers(lab, US_EU, COPY)) == set(range(1_501))
    seen.until(lambda s: state_of(s, SOURCE, 0) == state_of(s, SOURCE, 1) == {"running"}, "tasks")
    assert counters_never_decreased(seen.scrapes) == []
