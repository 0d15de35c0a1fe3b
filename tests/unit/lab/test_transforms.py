"""Transforms of the lab's flows."""

from __future__ import annotations

from mm2slo_core.topology import Flow
from mm2slo_lab.connect_properties import connectors
from mm2slo_lab.mirror_properties import mirror_properties
from mm2slo_lab.topology import LabTopology
from mm2slo_lab.transforms import dropping

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


def test_a_topology_takes_transforms_to_dedicated_mode_and_to_connect() -> None:
    topology = LabTopology(mm2_properties=dropping("gone"))

    dedicated = mirror_properties(topology, CLIENTS)
    on_connect = connectors(topology, US_EU, CLIENTS)["us->eu.MirrorSourceConnector"]

    for found in (dedicated, on_connect):
        assert {name: found[name] for name in EXPECTED} == EXPECTED
