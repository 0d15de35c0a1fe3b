"""A custom separator changes remote topic names and two of the six internal topics."""

from collections.abc import Iterator

import pytest
from exporter_watch import Watch, watch
from flow_checks import (
    commit_end_offsets,
    position_qualities,
    read_numbers,
    send,
    until_canaries,
    until_copied,
    until_ready_to_fail_over,
)

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
# A dot in the topic: with the default separator it would seem to come from a cluster "orders".
TOPIC, COPY = "orders.v1", "us_orders.v1"


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), mm2_properties={"replication.policy.separator": "_"})
    with Lab.start(topology, progress=lab_progress) as own:
        own.cluster("us").admin.create_topic(TOPIC, 2)
        send(own, US_EU, TOPIC, 400)
        yield own


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    with watch(lab, [US_EU], exporter={"instance": "separator"}) as watching:
        watching.until_ready()
        yield watching


def test_lag_of_idle_flow_is_exact(lab: Lab, seen: Watch) -> None:
    at_rest = until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    # Live: the offset syncs topic was found.
    assert position_qualities(at_rest, US_EU, TOPIC) == {"live"}
    assert read_numbers(lab, US_EU, COPY) == list(range(400))
    info = at_rest.by("target_topic", "mm2_topic_info", flow="us->eu", topic=TOPIC)
    assert info.keys() == {COPY}


def test_checkpoints_are_found_with_custom_separator(lab: Lab, seen: Watch) -> None:
    commit_end_offsets(lab, US_EU, TOPIC, "readers")
    until_ready_to_fail_over(seen, US_EU, "readers", TOPIC)


def test_canaries_arrive_with_custom_separator(seen: Watch) -> None:
    scrape = until_canaries(seen, US_EU, 5)
    assert scrape.value("mm2_heartbeats_present", flow="us->eu") == 1


def test_topic_names_equal_those_of_mirrormaker(lab: Lab, seen: Watch) -> None:
    us, eu = (lab.cluster(alias).admin.topics() for alias in ("us", "eu"))
    assert "mm2-offset-syncs_eu_internal" in us
    connect = {f"mm2-{kind}.us.internal" for kind in ("offsets", "status", "configs")}
    assert {"us_checkpoints_internal", "us_heartbeats", *connect} <= eu
    # Neither these nor the timeline are expected to be replicated.
    monitored = seen.scrapes[-1].by("topic", "mm2_topic_info", flow="us->eu")
    assert monitored.keys() == {TOPIC, "heartbeats"}
    assert set(seen.scrapes[-1].values("mm2_topic_missing", flow="us->eu").values()) == {0}
