"""Rows of docs/truth-table.md on the lab: state, SLIs and metrics."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import pytest
from exporter_watch import Scrape, Watch, watch
from truth_table import (
    CLASS,
    EU_US,
    FLOW,
    FLOW_SETTINGS,
    US_EU,
    Observation,
    documented,
    observe_fault,
    observe_faults,
    sli_cells,
    total,
    watch_working_flows,
)

from mm2slo_core.indicators.canary_rules import CanaryRecord
from mm2slo_core.indicators.sli_counters import Sli
from mm2slo_exporter.service.flow_runner import FlowRunner
from mm2slo_lab import lab_faults
from mm2slo_lab.lab_data import consume
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

MIN_CANARIES = 3


@contextmanager
def restarted_exporter(lab: Lab, topic: str, canary: Mapping[str, str]) -> Iterator[Watch]:
    """Start an exporter again with the same instance, as in a new process."""
    flow = {**FLOW_SETTINGS, "topics": [topic]}
    flow["canary"] = {**FLOW_SETTINGS["canary"], **canary}
    with watch(lab, [FLOW], flow=flow, exporter={"instance": topic}) as seen:
        seen.until_ready()
        yield seen


def test_state_with_mirrormaker_paused(lab: Lab, fresh_topic: str) -> None:
    with watch_working_flows(lab, fresh_topic) as seen:
        lab.mm2.pause()
        try:
            observation = observe_fault(seen, "MM2 paused")
        finally:
            lab.mm2.resume()
        seen.until(settled, "settled canaries after the pause")
    assert observation.cells == documented("MM2 paused")
    grown = observation.increase("mm2_replication_lag_records", topic=fresh_topic)
    # Nothing is replicated, so the lag grows by all produced records.
    assert grown == observation.increase("mm2_source_end_offset", topic=fresh_topic) > 40
    # While it is paused, its status topic still has every task running.
    tasks = {"flow": FLOW, "connector": "MirrorSourceConnector"}
    assert observation.end.active("state", "mm2_task_state", **tasks) == {"running"}


def test_state_with_mirrormaker_stopped(lab: Lab, fresh_topic: str) -> None:
    """One of two flows gets records."""
    busy, idle = US_EU.label, EU_US.label
    with watch_working_flows(lab, fresh_topic, {US_EU: True, EU_US: False}) as seen:
        lab.mm2.stop()
        try:
            found = observe_faults(seen, {busy: "MM2 stopped", idle: "MM2 stopped, idle source"})
        finally:
            lab.mm2.start()
    assert found[busy].cells == documented("MM2 stopped")
    end = found[busy].end
    # Nothing is replicated, so the lag grows by all produced records.
    grown = found[busy].increase("mm2_replication_lag_records", flow=busy, topic=fresh_topic)
    assert grown == found[busy].increase("mm2_source_end_offset", flow=busy, topic=fresh_topic) > 40
    assert total(end, "mm2_stalled_partitions", flow=busy, topic=fresh_topic) == 2
    assert found[idle].cells == documented("MM2 stopped, idle source")
    # Without data, only the canaries' partition is stalled.
    assert total(end, "mm2_flow_lag_records", flow=idle) == 0
    assert total(end, "mm2_stalled_partitions", flow=idle, topic=fresh_topic) == 0
    assert total(end, "mm2_stalled_partitions", flow=idle, topic="heartbeats") == 1


def test_state_with_mirrormaker_killed_and_restarted(lab: Lab, fresh_topic: str) -> None:
    """With canaries on their own topic, which a killed MirrorMaker 2 replicates again."""
    canary = {"carrier": "topic", "interval": "200ms"}
    with watch_working_flows(lab, fresh_topic, canary=canary) as seen:
        before = seen.scrape()
        lab.mm2.kill()
        try:
            lost = seen.until(
                lambda s: (
                    s.sli(FLOW, "availability")[1] >= before.sli(FLOW, "availability")[1] + 20
                ),
                "canaries past their deadline",
            )
            assert lost.sli(FLOW, "completeness")[1] < lost.sli(FLOW, "availability")[1]
        finally:
            lab.mm2.start()
        back = seen.scrape()
        sent = back.value("mm2_canary_sent_total", flow=FLOW)
        fresh = back.sli(FLOW, "data_freshness", CLASS)[0]
        assert sent is not None
        after = seen.until(
            lambda s: (
                s.sli(FLOW, "completeness")[1] >= sent
                and s.state(FLOW) == "running"
                and s.sli(FLOW, "data_freshness", CLASS)[0] > fresh
            ),
            "no lag, and a fresh slice",
        )
    fault = "MM2 killed, restarted after 150 s"
    assert sli_cells(before, after) | {"State": "running (position_advances)"} == documented(fault)
    good, judged, unknown = after.sli(FLOW, "uniqueness")
    copies = canaries_on(lab, "eu", "us.mm2slo.canary", fresh_topic)
    # Uniqueness counts each copy of a canary; only the first is good.
    duplicates = len(copies) - len(set(copies))
    assert (judged - good, unknown) == (duplicates, 0)
    assert after.value("mm2_canary_duplicates_total", flow=FLOW) == duplicates
    assert good == after.sli(FLOW, "completeness")[1]
    assert after.value("mm2_canary_lost_total", flow=FLOW) == 0


def settled(scrape: Scrape) -> bool:
    """Whether all sent canaries have arrived."""
    sent = scrape.value("mm2_canary_sent_total", flow=FLOW)
    return scrape.sli(FLOW, "completeness") == (sent, sent, 0)


def canaries_on(lab: Lab, cluster: str, topic: str, instance: str) -> list[int]:
    """Sequence numbers of an instance's canaries in *topic*, in log order."""
    broker = lab.cluster(cluster)
    records = sum(broker.admin.end_offsets(topic).values())
    found = []
    for message in consume(broker.librdkafka(), [topic], records, until_end=True):
        headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])
        canary = CanaryRecord.from_headers(headers)
        if canary is not None and canary.instance == instance:
            found.append(canary.sequence)
    return found


@dataclass(frozen=True)
class Outage:
    """An outage of a cluster that is source of one flow and target of the other."""

    topic: str
    up: Scrape
    source_down: Observation
    target_down: Observation
    end: Scrape
    """After both flows recovered."""


@pytest.fixture(scope="module")
def outage(lab: Lab) -> Outage:
    us, topic = lab.cluster("us"), f"outage-{os.getpid()}"
    with watch_working_flows(lab, topic, {US_EU: True, EU_US: True}) as seen:
        up = seen.scrape()
        us.stop()
        try:
            # MirrorMaker 2's heartbeats count as proof of activity for 30 s.
            faults_of = {US_EU.label: "source down", EU_US.label: "target down"}
            found = observe_faults(seen, faults_of)
            # Metrics of the target are still updated: records of another writer.
            here = {"flow": US_EU.label, "topic": topic}
            before = total(found[US_EU.label].end, "mm2_target_end_offset", **here)
            lab_faults.foreign_records(lab, US_EU, topic, 7, partition=0)
            seen.until(
                lambda s: total(s, "mm2_target_end_offset", **here) == before + 7,
                "the target's end offset to advance",
            )
        finally:
            us.start()
            lab.mm2.wait_mirroring()
        end = seen.until(
            lambda s: s.state(US_EU.label) in {"running", "idle"} and settled_but_unknown(s),
            "both flows to run, and canaries of the outage to arrive",
        )
    return Outage(topic, up, found[US_EU.label], found[EU_US.label], end)


def settled_but_unknown(scrape: Scrape) -> bool:
    """Whether all canaries sent while the target was down have arrived."""
    sent = scrape.value("mm2_canary_sent_total", flow=EU_US.label)
    good, judged, _unknown = scrape.sli(EU_US.label, "completeness")
    return good == judged == sent


def test_state_with_source_down(outage: Outage) -> None:
    observation = outage.source_down
    assert observation.cells == documented("source down")
    assert observation.counted("availability")[:2] == (0, 0)
    assert observation.counted("data_freshness", CLASS)[:2] == (0, 0)
    assert observation.counted("availability")[2] == observation.due_canaries
    for name in ("mm2_replication_lag_records", "mm2_flow_lag_records", "mm2_source_end_offset"):
        assert outage.up.values(name, flow=US_EU.label)
        assert not observation.end.values(name, flow=US_EU.label)
    errors = observation.increase(
        "mm2_exporter_collect_errors_total", cluster="us", stage="end_offsets"
    )
    assert errors > 0
    assert observation.increase("mm2_exporter_collect_errors_total", cluster="eu") == 0


def test_state_with_target_down(outage: Outage) -> None:
    observation, flow = outage.target_down, EU_US.label
    assert observation.cells == documented("target down")
    # Metrics of the source are still updated.
    assert observation.increase("mm2_source_end_offset", flow=flow, topic=outage.topic) > 40
    assert observation.counted("availability")[:2] == (0, 0)
    # Two partitions, one slice per 4 s.
    assert observation.counted("data_freshness", CLASS)[2] in {2, 4, 6}
    assert outage.up.values("mm2_target_end_offset", flow=flow)
    assert not observation.end.values("mm2_target_end_offset", flow=flow)
    # The canaries are complete; their unknown latency does not count as bad. Those sent after the
    # outage are late if MirrorMaker 2 needs longer than their deadline to connect again.
    good, judged, unknown = outage.end.sli(flow, "availability")
    first, last = (
        total(s, "mm2_canary_sent_total", flow=flow) for s in (observation.end, outage.end)
    )
    assert judged - good <= last - first
    assert unknown >= observation.counted("availability")[2]


def test_state_with_exporter_restarted(lab: Lab, fresh_topic: str) -> None:
    """Each canary, in flight or arrived, is settled in exactly one of three runs."""
    slow = {"interval": "1500ms"}
    with watch_working_flows(lab, fresh_topic, canary=slow) as seen:
        # Stop right after an arrival is counted, before the next canary.
        seen.until(lambda s: s.sli(FLOW, "completeness")[1] >= MIN_CANARIES, "canaries")
        runner = seen.runner(FLOW)
    first = settled_by(runner)
    lab.mm2.pause()
    try:
        with restarted_exporter(lab, fresh_topic, slow) as seen:
            seen.until(lambda s: (s.value("mm2_canary_pending", flow=FLOW) or 0) >= 4, "four")
            runner = seen.runner(FLOW)
        second = settled_by(runner)
    finally:
        lab.mm2.resume()
    with restarted_exporter(lab, fresh_topic, slow) as seen:
        end = seen.until(
            lambda s: (
                (s.value("mm2_canary_sent_total", flow=FLOW) or 0) >= MIN_CANARIES
                and s.value("mm2_canary_pending", flow=FLOW) == 0
            ),
            "nothing in flight",
        )
    good, third, unknown = end.sli(FLOW, "completeness")
    assert (good, unknown) == (third, 0)
    runs = blocks(canaries_on(lab, "us", "heartbeats", fresh_topic))
    assert len(runs) == 3
    sent_before = len(runs[0]) + len(runs[1])
    own = end.value("mm2_canary_sent_total", flow=FLOW)
    assert own is not None
    # The third run settles the canaries of the pause.
    assert third - own >= 4
    assert first + second + third == sent_before + own
    assert end.value("mm2_canary_duplicates_total", flow=FLOW) == 0


def settled_by(runner: FlowRunner) -> int:
    """Number of canaries settled for completeness by a finished run; all must be good."""
    report = runner.report
    assert report is not None
    [count] = [count for key, count in report.slis.items() if key.sli is Sli.COMPLETENESS]
    assert (count.good, count.unknown) == (count.total, 0)
    return count.total


def blocks(sequences: list[int]) -> list[list[int]]:
    """Split into runs of consecutive numbers, one per process."""
    found: list[list[int]] = []
    for sequence in sequences:
        if not found or sequence != found[-1][-1] + 1:
            found.append([])
        found[-1].append(sequence)
    return found
