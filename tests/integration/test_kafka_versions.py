"""One set of live checks on each line of Kafka that users run: figures, verdicts, audit, alert.

docs/limits.md names these lines, and those on which only replication is tested.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import flow_checks
import pytest
from alerting_lab import start_alerting_lab
from audit_scenario.audit_process import AuditRequest, audit
from exporter_watch import Watch, counters_never_decreased
from kafka_matrix import MATRIX
from topic_reader import count_copies
from transactional_traffic import continue_group

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.topology import Flow
from mm2slo_lab import lab_faults
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology, mirror_version
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
FLOW = US_EU.label
TOPIC, COPY = "orders", "us.orders"
INTERNAL = "app.internal"


@pytest.fixture(scope="module", params=MATRIX)
def lab(request: pytest.FixtureRequest, lab_progress: Progress) -> Iterator[Lab]:
    properties = {
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "refresh.groups.interval.seconds": "1",
    }
    topology = LabTopology(flows=(US_EU,), kafka_version=request.param, mm2_properties=properties)
    topics = {(US_EU, TOPIC): (3, 1_000), (US_EU, INTERNAL): (1, 10)}
    with flow_checks.start_lab(topology, lab_progress, topics) as own:
        line = mirror_version(request.param).removesuffix("x")
        assert any(f"connect-mirror-{line}" in jar.name for jar in own.jars)
        yield own


def has_consumer_protocol(lab: Lab) -> bool:
    """Whether the brokers have KIP-848, and MirrorMaker 2 the filters of KIP-1074."""
    return not lab.topology.kafka_version.startswith("3.")


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    flow = {"stall_after": "5s", "canary": {"deadline": "10s", "latency_tiers": ["5s", "10s"]}}
    with flow_checks.watch_flows(lab, "older", US_EU, settings=flow) as watching:
        yield watching


def test_lag_of_idle_flow_is_exact(lab: Lab, seen: Watch) -> None:
    at_rest = flow_checks.until_copied(lab, seen, US_EU, TOPIC, copy=COPY)
    assert flow_checks.position_qualities(at_rest, US_EU, TOPIC) == {"live"}
    assert flow_checks.read_numbers(lab, US_EU, COPY) == list(range(1_000))
    # The lag is that of all topics, of which some are still being copied.
    seen.until(lambda s: s.value("mm2_flow_lag_records", flow=FLOW) == 0, "no lag")


def test_topics_excluded_by_mirrormaker_have_no_lag(lab: Lab, seen: Watch) -> None:
    # Before 4.0 it does not replicate topics with this suffix (KIP-1074).
    replicated = {TOPIC, "heartbeats"} | ({INTERNAL} if has_consumer_protocol(lab) else set())
    seen.until(
        lambda s: s.by("topic", "mm2_topic_info", flow=FLOW).keys() == replicated,
        f"figures of {replicated}",
    )
    copies = {topic for topic in lab.cluster("eu").admin.topics() if topic.startswith("us.")}
    assert (f"us.{INTERNAL}" in copies) == (INTERNAL in replicated)


def test_canaries_and_heartbeats_arrive(seen: Watch) -> None:
    scrape = flow_checks.until_canaries(seen, US_EU, 5)
    good, total, unknown = scrape.sli(FLOW, "availability")
    assert (good, unknown) == (total, 0)
    assert scrape.value("mm2_heartbeats_present", flow=FLOW) == 1


def test_task_states_and_assignments_are_read(seen: Watch) -> None:
    scrape = seen.until(
        lambda s: (
            set(s.values("mm2_unassigned_partitions", flow=FLOW).values()) == {0}
            and s.values("mm2_task_state", flow=FLOW)
        ),
        "assigned partitions and tasks",
    )
    tasks = {"flow": FLOW, "connector": "MirrorSourceConnector"}
    assert scrape.active("task", "mm2_task_state", **tasks, state="running") == {"0", "1"}
    assert scrape.active("state", "mm2_task_state", **tasks) == {"running"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_group_continues_on_the_target_where_its_verdict_says(
    lab: Lab, seen: Watch, protocol: str
) -> None:
    if protocol == "consumer" and not has_consumer_protocol(lab):
        pytest.skip("brokers of 3.9 have no KIP-848")
    topic = f"failover-{protocol}"
    flow_checks.create_replicated_topic(lab, topic, 100)
    assert len(read_until(lab, "us", topic, protocol, 100)) == 100
    ready = flow_checks.until_ready_to_fail_over(seen, US_EU, protocol, topic)
    bounds = ready.values("mm2_failover_redelivery_records", group=protocol).values()
    flow_checks.send(lab, US_EU, topic, 30, first=100)
    wait_for(lambda: count_copies(lab, topic) == 130, "copies")
    reread = len(read_until(lab, "eu", f"us.{topic}", protocol, 130)) - 30
    assert min(bounds) <= reread <= max(bounds)


def read_until(lab: Lab, cluster: str, topic: str, group: str, end: int) -> list[int]:
    """Offsets that the group reads and commits up to *end*."""
    properties = lab.cluster(cluster).librdkafka()
    return continue_group(properties, topic, group, lambda offsets: offsets[-1:] == [end - 1])


def test_records_removed_before_they_are_copied_are_lost(lab: Lab, seen: Watch) -> None:
    topic = "removed"
    flow_checks.create_replicated_topic(lab, topic, 50)
    seen.until(lambda s: s.value("mm2_replicated_source_offset", topic=topic) == 50, "its position")
    lab.mm2.stop()
    flow_checks.send(lab, US_EU, topic, 50, first=50)
    seen.until(lambda s: s.value("mm2_replication_lag_records", topic=topic) == 50, "its lag")
    lab.cluster("us").admin.delete_records(topic, {0: 90})
    lab.mm2.start()
    seen.until(
        lambda s: s.value("mm2_retention_lost_records_total", topic=topic) == 40, "the lost records"
    )
    wait_for(lambda: count_copies(lab, topic) == 60, "the others")


def test_failed_task_is_reported_until_it_runs_again(lab: Lab, seen: Watch) -> None:
    topic = "too-large"
    flow_checks.create_replicated_topic(lab, topic, 1)
    failed = lab_faults.fail_mirror_task(lab, US_EU, topic)
    state = {"flow": FLOW, "connector": "MirrorSourceConnector", "state": "failed"}
    seen.until(lambda s: sum(s.values("mm2_task_state", **state).values()) == len(failed), "failed")
    seen.until(lambda s: s.values("mm2_partition_stalled", topic=topic).values(), "its partition")
    lab_faults.repair_mirror_task(lab, US_EU, topic)
    seen.until(lambda s: sum(s.values("mm2_task_state", **state).values()) == 0, "running tasks")


def test_audit_finds_no_fault_and_an_injected_one(lab: Lab) -> None:
    start = round(time.time() * 1000)
    topic = "audited"
    flow_checks.create_replicated_topic(lab, topic, 300)
    lab_faults.foreign_records(lab, US_EU, topic, 2)
    window = Window(start - 5_000, round(time.time() * 1000) + 1)
    [outcome] = audit(AuditRequest(lab.config_yaml(), window, (FLOW,), (topic,))).outcomes.values()
    assert (outcome.counts[Verdict.MATCHED], outcome.counts[Verdict.EXTRA]) == (300, 2)


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


def test_stop_pages_and_is_resolved(lab: Lab, tmp_path: Path) -> None:
    with start_alerting_lab(lab, tmp_path, [FLOW], [TOPIC]) as running:
        running.wait_healthy([FLOW])
        lab.mm2.stop()
        page = running.wait_message(1, "the page")
        assert "Flow us-&gt;eu has stopped" in page.payload["attachments"][0]["title"]
        lab.mm2.start()
        assert "RESOLVED" in running.wait_message(2, "the end").payload["attachments"][0]["title"]
