"""Spark's connector reads both sides with SCRAM over TLS."""

import time
from pathlib import Path

import pytest
from landed_topics import land_in_child
from tests.integration.conftest import LabFactory
from topic_reader import count_copies

from mm2slo_core.audit.audit_scope import Window
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import LabSecurity, LabTopology
from mm2slo_lab.managed_process import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.long]
COUNT = 3000


def test_secured_lab_lands_equal_records_of_both_sides(
    lab_factory: LabFactory, fresh_topic: str, tmp_path: Path
) -> None:
    lab = lab_factory(LabTopology(security=LabSecurity.SASL_SSL))
    us = lab.cluster("us")
    us.admin.create_topic(fresh_topic, 3)
    start = int(time.time() * 1000)
    produce(us.librdkafka(), fresh_topic, Load(COUNT))
    wait_for(lambda: count_copies(lab, fresh_topic) == COUNT, f"{COUNT} copies")
    window = Window(start, round(time.time() * 1000) + 1)

    census = land_in_child(lab.config_yaml(), tmp_path, window, "us->eu", fresh_topic)
    assert census["failed"] == {}
    assert census["offsets"] == census["rows"] == 2 * COUNT
    assert census["sides"] == [[0, 0, COUNT, COUNT], [0, 1, COUNT, COUNT]]
    assert census["unbalanced"] == 0
    folder = f"flow=us-to-eu/window={window.start}-{window.end}/run=r1"
    assert census["folders"] == [folder]
    assert census["manifests"] == [["r1", 2 * COUNT, 2 * COUNT]]
    assert census["progress"] == [2 * COUNT, 2 * COUNT]

    # Repeating the run replaces its rows; both sides are sampled equally.
    sampled = land_in_child(lab.config_yaml(), tmp_path, window, "us->eu", fresh_topic, sample=0.1)
    (source, target) = sampled["sides"]
    assert source[2] == target[2] == sampled["rows"] / 2
    assert 0.05 * COUNT < source[2] < 0.4 * COUNT
    assert sampled["unbalanced"] == 0
    assert sampled["offsets"] == 2 * COUNT
