"""A flow with the identity replication policy."""

from collections.abc import Iterator

import flow_checks
import pytest
from exporter_watch import Watch, counters_never_decreased

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC = "orders"
# Kafka renames every topic whose name ends with "heartbeats" by the default policy.
BEATS, COPIED_BEATS = "my-heartbeats", "us.my-heartbeats"
IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), mm2_properties=IDENTITY)
    topics = {(US_EU, TOPIC): (3, 600), (US_EU, BEATS): (1, 600)}
    with flow_checks.start_lab(topology, lab_progress, topics) as own:
        yield own


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    assert "kind: identity" in lab.config_yaml()
    with flow_checks.watch_flows(lab, "identity", US_EU) as watching:
        yield watching


@pytest.mark.parametrize(("topic", "copy"), [(TOPIC, TOPIC), (BEATS, COPIED_BEATS)])
def test_lag_of_idle_flow_is_exact(lab: Lab, seen: Watch, topic: str, copy: str) -> None:
    at_rest = flow_checks.until_copied(lab, seen, US_EU, topic, copy=copy)
    assert flow_checks.position_qualities(at_rest, US_EU, topic) == {"live"}
    assert flow_checks.read_numbers(lab, US_EU, copy) == list(range(600))
    info = at_rest.by("target_topic", "mm2_topic_info", flow="us->eu", topic=topic)
    assert info.keys() == {copy}


def test_only_source_topics_are_monitored(seen: Watch) -> None:
    monitored = seen.scrapes[-1].by("topic", "mm2_topic_info", flow="us->eu")
    assert monitored.keys() == {TOPIC, BEATS, "heartbeats"}
    assert set(seen.scrapes[-1].values("mm2_topic_missing", flow="us->eu").values()) == {0}


def test_canaries_use_prefixed_heartbeats_topic(lab: Lab, seen: Watch) -> None:
    scrape = flow_checks.until_canaries(seen, US_EU, 5)
    assert {"heartbeats", "us.heartbeats"} <= lab.cluster("eu").admin.topics()
    assert scrape.value("mm2_heartbeats_present", flow="us->eu") == 1
    assert flow_checks.canary_value(scrape, US_EU, "late_total") == 0


def test_group_at_end_offsets_is_ready(lab: Lab, seen: Watch) -> None:
    flow_checks.commit_end_offsets(lab, US_EU, TOPIC, "readers")
    flow_checks.until_ready_to_fail_over(seen, US_EU, "readers", TOPIC)


def test_stop_shows_backlog_and_start_clears_it(lab: Lab, seen: Watch) -> None:
    before = flow_checks.end_offsets(lab.cluster("us").librdkafka(), TOPIC)
    lab.mm2.stop()
    flow_checks.send(lab, US_EU, TOPIC, 90, first=600)
    flow_checks.until_lag(lab, seen, US_EU, TOPIC, copied=before)
    lab.mm2.start()
    at_rest = flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=TOPIC)
    assert flow_checks.values_by_partition(
        at_rest, "mm2_replication_lag_records", US_EU, TOPIC
    ) == {
        "0": 0,
        "1": 0,
        "2": 0,
    }
    assert flow_checks.read_numbers(lab, US_EU, TOPIC) == list(range(690))
    assert counters_never_decreased(seen.scrapes) == []
