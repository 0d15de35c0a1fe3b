"""Latency with the default reads of arrivals, compared with an independent consumer's clock.

The exporter's ordinary polls are far apart, so that only the arrivals topic gives narrow bounds.
"""

import math

import pytest
from audit_scenario.arrival_recorder import record_arrivals
from audit_scenario.audit_process import AuditRequest, audit
from audit_scenario.flow_waits import source_ends, wait_copied
from audit_scenario.record_contents import now
from audit_scenario.scenario_steps import traffic
from exporter_watch import watch
from fault_injection import read_all
from topic_reader import read_topic

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import (
    latency_bucket,
    latency_percentile,
    lower_bound_ms,
    merge_latencies,
    upper_bound_ms,
)
from mm2slo_core.config.service_config import TimelineConfig
from mm2slo_core.records.timeline_record import WatermarkRecord
from mm2slo_core.topology import Flow
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

US_EU = Flow("us", "eu")
POLL_MS = 10_000
GOAL_MS = 300
RECORDS = 600
RECORDS_OF_P99 = 299


def written_arrivals(lab: Lab, copy: str) -> list[WatermarkRecord]:
    """The records of *copy* in the arrivals topic."""
    properties = lab.cluster("eu").librdkafka()
    messages = read_topic(properties, TimelineConfig().arrivals_topic)
    found = (WatermarkRecord.decode(message.value()) for message in messages)
    return [each for each in found if each.topic == copy]


def newest_ends(lab: Lab, copy: str) -> int:
    """The sum of the newest end offsets in the arrivals topic."""
    found: dict[int, int] = {}
    for each in written_arrivals(lab, copy):
        found |= dict(zip(each.partitions, each.ends, strict=True))
    return sum(found.values())


def test_percentiles_are_within_300_ms_of_an_independent_consumer(
    lab: Lab, fresh_topic: str
) -> None:
    copy = f"us.{fresh_topic}"
    lab.cluster("us").admin.create_topic(fresh_topic, 2)
    wait_for(lambda: copy in lab.cluster("eu").admin.topics(), f"{copy} to exist")
    target = lab.cluster("eu").librdkafka()
    with (
        record_arrivals(target, {copy: 2}) as recorder,
        watch(lab, [US_EU], exporter={"poll_interval": f"{POLL_MS}ms"}) as seen,
    ):
        seen.until_ready()
        with traffic(lab, fresh_topic, rate=50):
            wait_for(lambda: bool(written_arrivals(lab, copy)), "arrivals to be written")
            start = now()
            wait_copied(lab, US_EU, copy, RECORDS + len(read_all(target, copy)))
            end = now()
        sent = sum(source_ends(lab, US_EU, fresh_topic).values())
        wait_copied(lab, US_EU, copy, sent)
        copies = read_all(target, copy)
        arrived_at = recorder.wait_arrival_times(copy, [each.place for each in copies])
        wait_for(lambda: newest_ends(lab, copy) == sent, "all arrivals to be written")
    request = AuditRequest(lab.config_yaml(), Window(start, end), topics=(fresh_topic,))
    cells = merge_latencies(each.end_to_end for each in audit(request).outcomes[copy].partitions)

    truth = sorted(
        arrived_at[each.place] - each.content.timestamp
        for each in copies
        if start <= each.content.timestamp < end
    )
    assert sum(cells.cells.values()) == len(truth) >= RECORDS_OF_P99
    # A machine that stalls widens brackets by as much, and delays the consumer.
    widest = max(
        each.times.answered_at - each.times.previous_requested_at
        for each in written_arrivals(lab, copy)
        if each.times.previous_requested_at is not None
    )
    allowed = max(GOAL_MS, math.ceil(widest * 1000), recorder.longest_poll_ms)
    assert allowed < POLL_MS
    print(f"widest bracket {widest:.3f} s, longest poll {recorder.longest_poll_ms} ms")
    for q in (0.5, 0.95, 0.99):
        found = latency_percentile(cells, q)
        assert found is not None
        assert found.lower is not None
        received = truth[math.ceil(q * len(truth)) - 1]
        print(f"p{q * 100:g}: {found.lower:.0f} to {found.upper:.0f} ms, consumer {received} ms")
        assert found.upper <= upper_bound_ms(latency_bucket(received + allowed)), q
        assert found.lower >= lower_bound_ms(latency_bucket(received - allowed)), q
        assert found.lower <= received, q
