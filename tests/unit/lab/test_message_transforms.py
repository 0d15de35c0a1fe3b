"""Message transforms of the lab."""

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_faults import dropping
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.mirror_properties import connectors, mirror_properties

US_EU = Flow("us", "eu")
CLIENTS = {alias: {"bootstrap.servers": f"{alias}:9092"} for alias in ("us", "eu")}
EXPECTED = {
    "transforms": "drop",
    "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.drop.predicate": "marked",
    "predicates": "marked",
    "predicates.marked.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    "predicates.marked.name": "gone",
}


def test_dropping_applies_in_dedicated_mode_and_on_connect() -> None:
    topology = LabTopology(mm2_properties=dropping(US_EU, "gone"))

    dedicated = mirror_properties(topology, CLIENTS)
    assert {name: dedicated.get(f"us->eu.{name}") for name in EXPECTED} == EXPECTED
    on_connect = connectors(topology, US_EU, CLIENTS)["us->eu.MirrorSourceConnector"]
    assert {name: on_connect.get(name) for name in EXPECTED} == EXPECTED
    assert not any("->" in name for name in on_connect)


def test_dropping_does_not_affect_other_flows() -> None:
    topology = LabTopology(mm2_properties=dropping(US_EU, "gone"))

    assert "transforms" not in mirror_properties(topology, CLIENTS)
    others = connectors(topology, US_EU.reverse, CLIENTS)
    assert not any("transforms" in settings for settings in others.values())
