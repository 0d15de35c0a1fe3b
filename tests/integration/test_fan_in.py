"""Two flows into one cluster, and two out of one: each has its own metrics."""

from collections import defaultdict
from collections.abc import Iterator

import flow_checks
import pytest
from exporter_watch import Scrape, Watch, counters_never_decreased
from topic_reader import read_topic

from mm2slo_core.records.timeline_record import Side, WatermarkRecord
from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_HUB, EU_HUB, US_EU = Flow("us", "hub"), Flow("eu", "hub"), Flow("us", "eu")
FLOWS = (US_HUB, EU_HUB, US_EU)
TOPIC = "orders"
COPIES = {US_HUB: "us.orders", EU_HUB: "eu.orders", US_EU: "us.orders"}
TIMELINE = "mm2slo.watermarks.internal"
COUNTS = {"us": 300, "eu": 500}


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(clusters=("us", "eu", "hub"), flows=FLOWS)
    topics = {(US_HUB, TOPIC): (2, COUNTS["us"]), (EU_HUB, TOPIC): (3, COUNTS["eu"])}
    with flow_checks.start_lab(topology, lab_progress, topics) as own:
        yield own


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    flow = {"topics": [TOPIC], "canary": {"interval": "100ms"}}
    with flow_checks.watch_flows(lab, "fan-in", *FLOWS, settings=flow) as watching:
        yield watching


def settled(scrape: Scrape, flow: Flow) -> tuple[float, float]:
    """Number of sent canaries that are not pending, and of arrived ones."""
    pending = flow_checks.canary_value(scrape, flow, "pending")
    return flow_checks.canary_value(scrape, flow, "sent_total") - pending, flow_checks.canary_value(
        scrape, flow, "received_total"
    )


@pytest.mark.parametrize("flow", FLOWS, ids=str)
def test_idle_flows_have_separate_values(lab: Lab, seen: Watch, flow: Flow) -> None:
    at_rest = flow_checks.until_copied(lab, seen, flow, TOPIC, copy=COPIES[flow])
    assert flow_checks.position_qualities(at_rest, flow, TOPIC) == {"live"}
    copied = flow_checks.values_by_partition(at_rest, "mm2_target_end_offset", flow, TOPIC)
    assert sum(copied.values()) == COUNTS[flow.source]
    assert len(copied) == {"us": 2, "eu": 3}[flow.source]


def test_flows_have_separate_lag(lab: Lab, seen: Watch) -> None:
    before = {
        alias: flow_checks.end_offsets(lab.cluster(alias).librdkafka(), TOPIC)
        for alias in ("us", "eu")
    }
    lab.mm2.stop()
    flow_checks.send(lab, US_HUB, TOPIC, 40)
    flow_checks.send(lab, EU_HUB, TOPIC, 70)
    for flow, lag in {US_HUB: 40, EU_HUB: 70, US_EU: 40}.items():
        behind = flow_checks.until_lag(lab, seen, flow, TOPIC, copied=before[flow.source])
        assert behind.value("mm2_flow_lag_records", flow=flow.label) == lag
    lab.mm2.start()
    for flow in FLOWS:
        flow_checks.until_copied(lab, seen, flow, TOPIC, copy=COPIES[flow])


def test_canaries_of_two_flows_are_distinguished(seen: Watch) -> None:
    """Canaries of both flows are in one topic, which both flows replicate."""
    enough = seen.until(
        lambda s: all(flow_checks.canary_value(s, flow, "received_total") >= 150 for flow in FLOWS),
        "150 canaries of each flow",
    )
    for flow in FLOWS:
        for outcome in ("lost", "expired", "duplicates", "reordered", "moved", "unknown"):
            assert flow_checks.canary_value(enough, flow, f"{outcome}_total") == 0, (flow, outcome)
        sent, received = settled(enough, flow)
        assert abs(received - sent) <= 1, flow
    assert counters_never_decreased(seen.scrapes) == []


def test_timeline_distinguishes_flows(lab: Lab, seen: Watch) -> None:
    """One topic on the hub holds records of both flows, with different keys."""
    seen.after_cycles(2)
    flows_of = defaultdict(set)
    newest: dict[tuple[Flow, Side], WatermarkRecord] = {}
    for message in read_topic(lab.cluster("hub").librdkafka(), TIMELINE):
        record = WatermarkRecord.decode(message.value())
        flows_of[message.key()].add(record.flow)
        if record.topic.endswith(TOPIC):
            newest[record.flow, record.side] = record
    assert all(len(found) == 1 for found in flows_of.values())
    assert set(newest) == {(f, side) for f in (US_HUB, EU_HUB) for side in Side}
    for (flow, side), record in newest.items():
        at, topic = (flow.source, TOPIC) if side is Side.SOURCE else (flow.target, COPIES[flow])
        assert record.topic == topic
        found = dict(zip(map(str, record.partitions), record.ends, strict=True))
        assert found == flow_checks.end_offsets(lab.cluster(at).librdkafka(), topic)
