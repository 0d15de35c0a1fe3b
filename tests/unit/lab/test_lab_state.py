"""The state file, configuration and topology of a lab."""

from pathlib import Path

import pytest

from mm2slo_core.config.config_document import Resolvers
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.topology import Flow
from mm2slo_lab import broker_properties
from mm2slo_lab.lab_topology import LabEngine, LabError, LabSecurity, LabTopology
from mm2slo_lab.managed_process import ProcessHandle
from mm2slo_lab.mirror_properties import render_config
from mm2slo_lab.running_lab import LabState, save_lab_state

TOPOLOGIES = [
    LabTopology(),
    LabTopology(
        clusters=("us", "eu", "hub"),
        flows=(Flow("us", "hub"), Flow("eu", "hub")),
        kafka_version="3.9.x",
        security=LabSecurity.SASL_SSL,
        mm2_properties={"tasks.max": "4"},
        broker_properties={"num.io.threads": "8"},
        broker_heap=1024,
    ),
    LabTopology(engine=LabEngine.CONNECT),
]


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_saved_state_parses_to_the_same_state(topology: LabTopology, tmp_path: Path) -> None:
    state = LabState(
        root=tmp_path,
        topology=topology,
        ports={"us.client": 20001, "us.controller": 20002},
        handles={"us": ProcessHandle(4711, 123456), "eu": ProcessHandle(4712, None)},
    )
    file = tmp_path / "lab" / "state.json"

    save_lab_state(state, file)

    assert LabState.parse(file.read_text()) == state
    assert [path.name for path in file.parent.iterdir()] == ["state.json"]


def test_parse_state_of_other_format_raises() -> None:
    with pytest.raises(LabError, match="has format 7, expected 1"):
        LabState.parse('{"format": 7}')


def configuration(topology: LabTopology) -> str:
    entries = {
        alias: broker_properties.mm2slo("127.0.0.1:20001", topology.security, Path("/ca.pem"))
        for alias in topology.clusters
    }
    return render_config(topology, entries, flow={"stall_after": "5s"})


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_rendered_config_is_valid(topology: LabTopology) -> None:
    resolvers = Resolvers(env=str, file=str)

    config = load_config(configuration(topology), resolvers=resolvers, name="mm2slo.yaml")

    assert tuple(flow.flow for flow in config.flows) == topology.flows
    assert {flow.stall_after for flow in config.flows} == {5.0}
    assert {flow.offset_flush_interval for flow in config.flows} == {1.0}


@pytest.mark.parametrize(
    ("topology", "line"),
    [
        (LabTopology(kafka_version="3.9.x"), r"  - .*[\-\.]internal"),
        (LabTopology(), r"  - mm2.*\.internal"),
        (LabTopology(engine=LabEngine.CONNECT), "    status_topic: connect-status"),
        (
            LabTopology(mm2_properties={"eu.exactly.once.source.support": "enabled"}),
            "  exactly_once: true",
        ),
        (
            LabTopology(mm2_properties={"us.consumer.isolation.level": "read_committed"}),
            "  isolation: read_committed",
        ),
        (LabTopology(mm2_properties={"us->eu.topics": "a, b"}), "  - b"),
        (
            LabTopology(mm2_properties={"replication.policy.class": "x.IdentityReplicationPolicy"}),
            "    kind: identity",
        ),
    ],
)
def test_rendered_config_matches_mirrormaker_properties(topology: LabTopology, line: str) -> None:
    assert line in configuration(topology).splitlines()


@pytest.mark.parametrize(
    ("clusters", "message"),
    [
        (("us", "us"), "expected one or more different names"),
        (("us", "asia"), r"unknown clusters \['eu'\]"),
    ],
)
def test_invalid_topology_raises(clusters: tuple[str, ...], message: str) -> None:
    with pytest.raises(LabError, match=message):
        LabTopology(clusters=clusters)


def test_remote_topic_follows_replication_policy() -> None:
    flow = Flow("us", "eu")
    identity = {"replication.policy.class": "x.y.IdentityReplicationPolicy"}

    assert LabTopology().remote_topic(flow, "orders") == "us.orders"
    underscore = LabTopology(mm2_properties={"replication.policy.separator": "_"})
    assert underscore.remote_topic(flow, "orders") == "us_orders"
    assert LabTopology(mm2_properties=identity).remote_topic(flow, "orders") == "orders"
    assert LabTopology(mm2_properties=identity).heartbeats_topic(flow) == "us.heartbeats"
