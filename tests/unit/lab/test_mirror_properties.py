"""Properties of MirrorMaker 2 and Kafka Connect."""

from collections.abc import Mapping

import pytest

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_topology import LabEngine, LabTopology
from mm2slo_lab.mirror_properties import connectors, mirror_properties, worker_properties

US_EU, EU_US = Flow("us", "eu"), Flow("eu", "us")


def clients(topology: LabTopology) -> Mapping[str, Mapping[str, str]]:
    return {alias: {"bootstrap.servers": f"{alias}:9092"} for alias in topology.clusters}


def rendered(topology: LabTopology) -> dict[str, str]:
    return mirror_properties(topology, clients(topology))


@pytest.mark.parametrize(
    ("flows", "pair", "enabled", "heartbeats"),
    [
        ((US_EU, EU_US), US_EU, "true", "true"),
        ((US_EU, EU_US), EU_US, "true", "true"),
        ((US_EU,), US_EU, "true", "true"),
        # It writes the heartbeats on us that us->eu replicates.
        ((US_EU,), EU_US, "false", "true"),
        ((US_EU,), Flow("us", "hub"), "false", "false"),
        ((US_EU,), Flow("hub", "us"), "false", "false"),
    ],
)
def test_reverse_of_flow_keeps_heartbeats_enabled(
    flows: tuple[Flow, ...], pair: Flow, enabled: str, heartbeats: str
) -> None:
    properties = rendered(LabTopology(clusters=("us", "eu", "hub"), flows=flows))

    assert properties[f"{pair.label}.enabled"] == enabled
    assert properties[f"{pair.label}.emit.heartbeats.enabled"] == heartbeats


def test_worker_settings_have_cluster_prefixes() -> None:
    properties = rendered(LabTopology())

    assert properties["us.offset.flush.interval.ms"] == "1000"
    assert properties["eu.offset.flush.interval.ms"] == "1000"
    assert "offset.flush.interval.ms" not in properties


def test_mm2_properties_override_defaults() -> None:
    given = {"tasks.max": "7", "eu.offset.flush.interval.ms": "10000", "us->eu.enabled": "false"}

    properties = rendered(LabTopology(mm2_properties=given))

    assert given.items() <= properties.items()
    assert properties["us.offset.flush.interval.ms"] == "1000"


def test_connectors_of_flow_and_of_its_reverse() -> None:
    topology = LabTopology(flows=(US_EU,), engine=LabEngine.CONNECT)
    found = {
        name: config["connector.class"].rpartition(".")[2]
        for pair in topology.pairs
        for name, config in connectors(topology, pair, clients(topology)).items()
    }

    assert found == {
        "us->eu.MirrorSourceConnector": "MirrorSourceConnector",
        "us->eu.MirrorCheckpointConnector": "MirrorCheckpointConnector",
        "us->eu.MirrorHeartbeatConnector": "MirrorHeartbeatConnector",
        "eu->us.MirrorHeartbeatConnector": "MirrorHeartbeatConnector",
    }


def test_connector_has_source_and_target_of_flow() -> None:
    topology = LabTopology(engine=LabEngine.CONNECT)
    config = connectors(topology, US_EU, clients(topology))["us->eu.MirrorSourceConnector"]

    assert config["source.cluster.bootstrap.servers"] == "us:9092"
    assert config["target.cluster.bootstrap.servers"] == "eu:9092"
    assert config["header.converter"].endswith("ByteArrayConverter")
    assert "connect-.*" in config["topics.exclude"]


def test_worker_passes_security_to_all_clients() -> None:
    client = {"bootstrap.servers": "eu:9092", "security.protocol": "SASL_SSL"}

    properties = worker_properties(client, 8083)

    assert {key for key in properties if key.endswith("security.protocol")} == {
        "security.protocol",
        "producer.security.protocol",
        "consumer.security.protocol",
        "admin.security.protocol",
    }
    assert properties["listeners"] == "http://127.0.0.1:8083"
