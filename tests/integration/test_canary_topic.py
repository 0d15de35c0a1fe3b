"""The canary topic grows, is deleted and created again while MirrorMaker 2 replicates it."""

from collections.abc import Iterator

import flow_checks
import pytest
from exporter_watch import Scrape, Watch, counters_never_decreased

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC, COPY = "mm2slo.canary", "us.mm2slo.canary"
REFRESH_SECONDS = 30
"""MirrorMaker 2 refreshes its topics less often than canaries are due."""
CANARY = {
    "carrier": "topic",
    "interval": "200ms",
    "deadline": "10s",
    "latency_tiers": ["5s", "10s"],
}


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    settings = {"refresh.topics.interval.seconds": str(REFRESH_SECONDS)}
    topology = LabTopology(flows=(US_EU,), mm2_properties=settings)
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, TOPIC): (2, 0)}) as own:
        wait_for(lambda: COPY in own.cluster("eu").admin.topics(), "the copy")
        yield own


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    with flow_checks.watch_flows(lab, "canary-topic", US_EU, settings={"canary": CANARY}) as watch:
        yield watch


def received(scrape: Scrape) -> float:
    return flow_checks.canary_value(scrape, US_EU, "received_total") or 0


def test_growth_of_canary_topic_makes_no_canary_late(lab: Lab, seen: Watch) -> None:
    us, eu = lab.cluster("us").admin, lab.cluster("eu").admin
    flow_checks.until_canaries(seen, US_EU, 10)
    us.add_partitions(TOPIC, 3)
    wait_for(lambda: eu.partition_count(COPY) == 3, "the partition of the copy")
    wait_for(lambda: eu.end_offsets(COPY)[2] >= 5, "canaries in the new partition")
    grown = flow_checks.until_canaries(seen, US_EU, 10)
    good, total, unknown = grown.sli(US_EU.label, "availability")
    assert (good, unknown) == (total, 0)
    assert flow_checks.canary_value(grown, US_EU, "late_total") == 0


def test_canary_topic_that_is_deleted_is_created_and_measured_again(lab: Lab, seen: Watch) -> None:
    us = lab.cluster("us").admin
    before = seen.scrape()
    us.delete_topic(TOPIC)
    wait_for(lambda: TOPIC in us.topics(), "the topic")
    seen.until(lambda s: received(s) > received(before) + 50, "canaries of the new topic", 300)
    after = seen.after_cycles(3)
    for outcome in ("lost", "duplicates", "reordered", "moved"):
        assert flow_checks.canary_value(after, US_EU, f"{outcome}_total") == 0, outcome
    assert after.state(US_EU.label) in {"running", "idle"}
    assert counters_never_decreased(seen.scrapes) == []


def test_copy_that_is_deleted_and_created_again_has_no_duplicates(lab: Lab, seen: Watch) -> None:
    eu = lab.cluster("eu").admin
    before = seen.scrape()
    eu.delete_topic(COPY)
    wait_for(lambda: COPY in eu.topics(), "the copy")
    seen.until(lambda s: received(s) > received(before) + 50, "canaries in the new copy", 300)
    after = seen.after_cycles(3)
    assert flow_checks.canary_value(after, US_EU, "duplicates_total") == 0
