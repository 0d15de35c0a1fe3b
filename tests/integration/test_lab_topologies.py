"""Labs with other topologies: secured, on Connect, fan-in, older Kafka."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import APP, LabEngine, LabSecurity, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = pytest.mark.lab
LabFactory = Callable[..., Lab]
US_EU = Flow("us", "eu")
US_HUB, EU_HUB = Flow("us", "hub"), Flow("eu", "hub")
FAN_IN = LabTopology(clusters=("us", "eu", "hub"), flows=(US_HUB, EU_HUB))


def replicate(lab: Lab, flow: Flow, count: int = 100) -> dict[int, int]:
    """Produce on the source, wait for the copies, and return their end offsets."""
    source, target = lab.cluster(flow.source), lab.cluster(flow.target)
    remote = lab.topology.remote_topic(flow, "orders")
    source.admin.create_topic("orders", 2)
    produce(source.librdkafka(), "orders", Load(count))
    wait_for(lambda: sum(target.admin.end_offsets(remote).values()) == count, f"copies on {flow}")
    return target.admin.end_offsets(remote)


@pytest.mark.long
def test_three_clusters_replicate_as_fan_in(lab_factory: LabFactory) -> None:
    lab = lab_factory(FAN_IN)

    for flow in FAN_IN.flows:
        assert sum(replicate(lab, flow).values()) == 100

    hub = lab.cluster("hub").admin.topics()
    assert {"us.orders", "eu.orders", "us.heartbeats", "eu.heartbeats"} <= hub
    # No herder between us and eu was started.
    assert not {"mm2-status.eu.internal", "eu.heartbeats"} & lab.cluster("us").admin.topics()


@pytest.mark.long
@pytest.mark.parametrize("security", [LabSecurity.SASL_PLAINTEXT, LabSecurity.SASL_SSL])
def test_secured_lab_replicates_and_denies(lab_factory: LabFactory, security: LabSecurity) -> None:
    lab = lab_factory(LabTopology(flows=(US_EU,), security=security))
    us = lab.cluster("us")
    replicate(lab, US_EU)

    with pytest.raises(RuntimeError, match=r"1 records for orders.*TOPIC_AUTHORIZATION_FAILED"):
        produce(us.librdkafka(APP), "orders", Load(1))

    us.admin.grant(APP.name, "TOPIC", "orders", "WRITE")
    wait_for(lambda: accepted(us.librdkafka(APP)), "the grant")
    assert us.admin.revoke(APP.name, "TOPIC", "orders", "WRITE") == 1


def accepted(properties: dict[str, str]) -> bool:
    try:
        return produce(properties, "orders", Load(1)).count == 1
    except RuntimeError:
        return False


@pytest.mark.long
def test_connect_runs_mirror_connectors(lab_factory: LabFactory) -> None:
    lab = lab_factory(LabTopology(flows=(US_EU,), engine=LabEngine.CONNECT))

    assert sum(replicate(lab, US_EU).values()) == 100

    assert set(lab.connect("eu").states().values()) == {"RUNNING"}
    assert set(lab.connect("us").states()) == {"eu->us.MirrorHeartbeatConnector-0"}
    assert {"connect-offsets", "connect-status"} <= lab.cluster("eu").admin.topics()
    assert "us.connect-offsets" not in lab.cluster("eu").admin.topics()


@pytest.mark.long
@pytest.mark.parametrize("version", ["3.9.x", "4.0.x", "4.1.x", "4.2.0", "4.3.x"])
def test_lab_with_older_kafka_replicates(lab_factory: LabFactory, version: str) -> None:
    lab = lab_factory(LabTopology(kafka_version=version))

    for flow in lab.topology.flows:
        assert sum(replicate(lab, flow).values()) == 100


@pytest.mark.long
def test_lab_with_exactly_once_replicates(lab_factory: LabFactory) -> None:
    topology = LabTopology(
        flows=(US_EU,),
        mm2_properties={
            "eu.exactly.once.source.support": "enabled",
            "us.exactly.once.source.support": "enabled",
            "us.consumer.isolation.level": "read_committed",
            "eu.consumer.isolation.level": "read_committed",
            "dedicated.mode.enable.internal.rest": "true",
            "listeners": "http://127.0.0.1:0",
        },
    )
    lab = lab_factory(topology)
    source, eu = lab.cluster("us"), lab.cluster("eu")
    source.admin.create_topic("orders")
    produce(source.librdkafka(), "orders", Load(100))

    # The marker of each transaction takes an offset of the copy.
    wait_for(lambda: sum(eu.admin.end_offsets("us.orders").values()) > 100, "copies and a marker")


def test_lab_stop_deletes_data(lab_factory: LabFactory) -> None:
    lab = lab_factory(LabTopology(clusters=("solo",), flows=(), engine=LabEngine.NONE))
    root: Path = lab.runtime.root
    assert (root / "solo" / "data").is_dir()

    lab.close()

    assert not root.exists()
    assert not any(process.running for process in lab.processes.values())
