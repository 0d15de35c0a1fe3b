"""Two flows into one topic of the same name: positions come from MirrorMaker 2's commits."""

import time
from collections.abc import Iterator

import flow_checks
import pytest
from exporter_watch import Scrape, Watch, counters_never_decreased

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_HUB, EU_HUB = Flow("us", "hub"), Flow("eu", "hub")
FLOWS = (US_HUB, EU_HUB)
TOPIC = "orders"
FLUSH = 3.0
COUNTS = {US_HUB: 400, EU_HUB: 700}


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    properties = {
        "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "hub.offset.flush.interval.ms": f"{FLUSH * 1000:.0f}",
    }
    topology = LabTopology(clusters=("us", "eu", "hub"), flows=FLOWS, mm2_properties=properties)
    topics = {(flow, TOPIC): (2, COUNTS[flow]) for flow in FLOWS}
    with flow_checks.start_lab(topology, lab_progress, topics) as own:
        yield own


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    flow = {"stall_after": "5s"}
    with flow_checks.watch_flows(lab, "identity-fan-in", *FLOWS, settings=flow) as watching:
        yield watching


def lags(scrape: Scrape, flow: Flow) -> dict[str, float]:
    return flow_checks.values_by_partition(scrape, "mm2_replication_lag_records", flow, TOPIC)


def until_at_rest(lab: Lab, seen: Watch, flow: Flow, timeout: float) -> Scrape:
    at_source = flow_checks.end_offsets(lab.cluster(flow.source).librdkafka(), TOPIC)
    at_rest = seen.until(
        lambda s: (
            flow_checks.values_by_partition(s, "mm2_replicated_source_offset", flow, TOPIC)
            == at_source
        ),
        f"{flow} to be replicated",
        timeout,
    )
    assert lags(at_rest, flow) == {"0": 0, "1": 0}
    return at_rest


def test_idle_positions_equal_commits(lab: Lab, seen: Watch) -> None:
    for flow in FLOWS:
        at_rest = until_at_rest(lab, seen, flow, 60)
        assert flow_checks.position_qualities(at_rest, flow, TOPIC) == {"shared_target"}
    both = flow_checks.end_offsets(lab.cluster("hub").librdkafka(), TOPIC)
    assert sum(both.values()) == sum(COUNTS.values())
    assert len(flow_checks.read_numbers(lab, US_HUB, TOPIC)) == sum(COUNTS.values())


def test_records_of_one_flow_do_not_advance_the_other(lab: Lab, seen: Watch) -> None:
    """Records from us advance the shared topic, but not eu's position."""
    start = len(seen.scrapes)
    produce(lab.cluster("us").librdkafka(), TOPIC, Load(5_000, first=400, value_size=20))
    sent_at = time.monotonic()
    until_at_rest(lab, seen, US_HUB, 60)
    # Known with the next commit; a busy machine needs some seconds more.
    assert time.monotonic() - sent_at <= FLUSH + 10
    eu = seen.scrapes[start:]
    assert [lags(scrape, EU_HUB) for scrape in eu] == [{"0": 0, "1": 0}] * len(eu)
    positions = [
        flow_checks.values_by_partition(s, "mm2_replicated_source_offset", EU_HUB, TOPIC)
        for s in eu
    ]
    assert positions == [flow_checks.end_offsets(lab.cluster("eu").librdkafka(), TOPIC)] * len(eu)


def test_backlog_ignores_records_of_other_flow(lab: Lab, seen: Watch) -> None:
    """Interpolation would count records that another flow replicates."""
    start = {
        flow: flow_checks.end_offsets(lab.cluster(flow.source).librdkafka(), TOPIC)
        for flow in FLOWS
    }
    backlog = {US_HUB: 50, EU_HUB: 80}
    lab.mm2.stop()
    for flow, count in backlog.items():
        flow_checks.send(lab, flow, TOPIC, count, first=10_000)
    behind = {
        flow: flow_checks.until_lag(lab, seen, flow, TOPIC, copied=start[flow]) for flow in FLOWS
    }
    produce(lab.cluster("hub").librdkafka(), TOPIC, Load(30, value_size=20))
    after = seen.after_cycles(3)
    for flow, count in backlog.items():
        assert after.value("mm2_flow_lag_records", flow=flow.label) == count
        assert lags(after, flow) == lags(behind[flow], flow)
        assert flow_checks.position_qualities(after, flow, TOPIC) == {"shared_target"}
    seen.until(lambda s: {s.state(flow.label) for flow in FLOWS} == {"stopped"}, "two stops")
    lab.mm2.start()
    for flow in FLOWS:
        until_at_rest(lab, seen, flow, 90)


def test_canaries_of_both_flows_are_distinguished(seen: Watch) -> None:
    for flow in FLOWS:
        scrape = flow_checks.until_canaries(seen, flow, 5)
        assert flow_checks.canary_value(scrape, flow, "lost_total") == 0
    assert counters_never_decreased(seen.scrapes) == []
