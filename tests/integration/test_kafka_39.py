"""The exporter with brokers and MirrorMaker 2 of Kafka 3.9."""

from __future__ import annotations

from typing import TYPE_CHECKING

import flow_checks
import pytest
from exporter_watch import counters_never_decreased

from mm2slo_core.topology import Flow
from mm2slo_lab import LabTopology

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exporter_watch import Watch

    from mm2slo_lab import Lab
    from mm2slo_lab.kafka_jars import Progress

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
FLOW = US_EU.label
TOPIC, COPY = "orders", "us.orders"
# Before 4.0, MM2 does not replicate topics with this suffix (KIP-1074).
INTERNAL = "app.internal"


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), kafka_version="3.9.x")
    topics = {(US_EU, TOPIC): (3, 1_000), (US_EU, INTERNAL): (1, 10)}
    with flow_checks.start_lab(topology, lab_progress, topics) as own:
        assert any("connect-mirror-3.9." in jar.name for jar in own.jars)
        yield own


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    flow = {"stall_after": "5s", "canary": {"deadline": "10s", "latency_tiers": ["5s", "10s"]}}
    with flow_checks.watch_flows(lab, "older", US_EU, settings=flow) as watching:
        yield watching


def test_lag_of_idle_flow_is_exact(lab: Lab, seen: Watch) -> None:
    at_rest = flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    assert flow_checks.position_qualities(at_rest, US_EU, TOPIC) == {"live"}
    assert flow_checks.read_numbers(lab, US_EU, COPY) == list(range(1_000))
    assert at_rest.value("mm2_flow_lag_records", flow=FLOW) == 0


def test_topics_excluded_by_kafka_39_have_no_lag(lab: Lab, seen: Watch) -> None:
    monitored = seen.scrapes[-1].values("mm2_topic_info", flow=FLOW)
    assert {dict(labels)["topic"] for labels in monitored} == {TOPIC, "heartbeats"}
    assert f"us.{INTERNAL}" not in lab.cluster("eu").admin.topics()


def test_task_states_and_assignments_are_read(seen: Watch) -> None:
    scrape = seen.until(
        lambda s: (
            set(s.values("mm2_unassigned_partitions", flow=FLOW).values()) == {0}
            and s.values("mm2_task_state", flow=FLOW)
        ),
        "assigned partitions and tasks",
    )
    states = scrape.values("mm2_task_state", flow=FLOW, connector="MirrorSourceConnector")
    on = {
        (dict(labels)["task"], dict(labels)["state"]) for labels, value in states.items() if value
    }
    assert on == {("0", "running"), ("1", "running")}


def test_group_at_end_offsets_is_ready(lab: Lab, seen: Watch) -> None:
    flow_checks.commit_end_offsets(lab, US_EU, TOPIC, "readers")
    flow_checks.until_ready_to_fail_over(seen, US_EU, "readers", TOPIC)


def test_canaries_and_heartbeats_arrive(seen: Watch) -> None:
    scrape = flow_checks.until_canaries(seen, US_EU, 5)
    good, total, unknown = scrape.sli(FLOW, "availability")
    assert (good, unknown) == (total, 0)
    assert scrape.value("mm2_heartbeats_present", flow=FLOW) == 1


def test_stop_is_reported_and_start_clears_backlog(lab: Lab, seen: Watch) -> None:
    before = flow_checks.end_offsets(lab.cluster("us").librdkafka(), TOPIC)
    lab.mm2.stop()
    flow_checks.send(lab, US_EU, TOPIC, 120, first=1_000)
    behind = flow_checks.until_lag(lab, seen, US_EU, TOPIC, copied=before)
    assert behind.value("mm2_flow_lag_records", flow=FLOW) == 120
    seen.until(lambda s: s.state(FLOW) == "stopped", "the state stopped")
    lab.mm2.start()
    flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    assert flow_checks.read_numbers(lab, US_EU, COPY) == list(range(1_120))
    end = seen.until(
        lambda s: (
            s.state(FLOW) in {"running", "idle"}
            and s.sli(FLOW, "completeness")[1] == flow_checks.canary_value(s, US_EU, "sent_total")
        ),
        "the canaries of the stop",
    )
    sent = flow_checks.canary_value(end, US_EU, "sent_total")
    assert end.sli(FLOW, "completeness") == (sent, sent, 0)
    assert counters_never_decreased(seen.scrapes) == []
