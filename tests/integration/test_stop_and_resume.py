"""Metrics while MirrorMaker 2 is stopped and restarted."""

import time
from collections.abc import Iterator

import pytest
from exporter_watch import Scrape, Watch, counters_never_decreased, watch
from flow_checks import canary_value, values_by_partition
from transactional_traffic import consume_and_commit

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

US_EU = Flow("us", "eu")
FLOW = US_EU.label
DEADLINE, STALL_AFTER, THRESHOLD = 5.0, 5.0, 3.0
CYCLE = 3.0
"""A cycle of the exporter (0.5 s) on a busy machine."""
STALL = 5
"""Canaries, one a second, that a process sends or counts late after a stall."""


def at(scrape: Scrape) -> float:
    """Time of the evaluation."""
    found = scrape.value("mm2_flow_observed_timestamp_seconds", flow=FLOW)
    assert found is not None
    return found


def copies_read_at(scrape: Scrape) -> float:
    """When the copies of canaries were last read to their end."""
    name = "mm2_exporter_last_success_timestamp_seconds"
    return scrape.value(name, cluster="eu", stage="canary_receive") or 0


def lags(scrape: Scrape, topic: str) -> dict[str, float]:
    return values_by_partition(scrape, "mm2_replication_lag_records", US_EU, topic)


class StopOutage:
    """A stop and restart of MirrorMaker 2, with scrapes at each step."""

    topic = "stop-and-resume"
    group = "stop-and-resume-readers"
    before: Scrape
    after_stop: Scrape
    first_lag: Scrape
    stopped: Scrape
    stalled: Scrape
    later: Scrape
    caught_up: Scrape
    all_scrapes: list[Scrape]
    produced_between: tuple[float, float]
    started_again: float

    def __init__(self, lab: Lab, seen: Watch) -> None:
        self.lab, self.seen = lab, seen
        self.us = lab.cluster("us")

    def produce(self, *counts: int) -> None:
        for partition, count in enumerate(counts):
            if count:
                produce(self.us.librdkafka(), self.topic, Load(count, partition=partition))

    def until_lag(self, *lag: int) -> Scrape:
        wanted = {str(partition): count for partition, count in enumerate(lag)}
        return self.seen.until(lambda s: lags(s, self.topic) == wanted, f"a lag of {lag}")

    def run(self) -> None:
        self.seen.until_ready()
        self.produce(100, 100, 100)
        consume_and_commit(self.us.librdkafka(), self.topic, self.group, 150)
        self.until_lag(0, 0, 0)
        self.before = self.seen.until(
            lambda s: (
                canary_value(s, US_EU, "received_total") >= 3
                and canary_value(s, US_EU, "pending") == 0
            ),
            "arrived canaries",
        )
        self.lab.mm2.stop()
        try:
            self.while_stopped()
        finally:
            self.started_again = time.time()
            self.lab.mm2.start()
        self.when_resumed()
        self.all_scrapes = list(self.seen.scrapes)

    def while_stopped(self) -> None:
        ended, first = time.time(), len(self.seen.scrapes)
        self.after_stop = self.seen.until(
            lambda s: (
                copies_read_at(s) > ended + 2
                and at(s) - canary_value(s, US_EU, "last_arrival_timestamp_seconds") > 2
            ),
            "the last copies",
        )
        start = time.time()
        self.produce(300, 200)
        self.produced_between = (start, time.time())
        self.first_lag = self.until_lag(300, 200, 0)
        self.seen.until(lambda s: s.state(FLOW) == "stopped", "the state stopped")
        self.stopped = next(s for s in self.seen.scrapes[first:] if s.state(FLOW) == "stopped")
        self.stalled = self.seen.until(
            lambda s: (
                values_by_partition(s, "mm2_partition_stalled", US_EU, self.topic)
                == {**STALLED, "2": 0}
            ),
            "stalled partitions",
        )
        self.produce(0, 50)
        self.until_lag(300, 250, 0)
        bad = self.after_stop.sli(FLOW, "availability")[1] + 10
        self.later = self.seen.until(
            lambda s: (
                s.sli(FLOW, "availability")[1] >= bad
                and at(s) - at(self.first_lag) > 10
                and at(s) - at(self.stalled) > 5  # more than a slice
            ),
            "ten more overdue canaries",
        )

    def when_resumed(self) -> None:
        self.until_lag(0, 0, 0)
        self.produce(150, 150, 150)
        consume_and_commit(self.us.librdkafka(), self.topic, self.group, 1000)
        self.caught_up = self.seen.until(self.settled, "all canaries settled and no lag")

    def scrapes_before_stopped_state(self) -> list[Scrape]:
        stopped = next(n for n, each in enumerate(self.all_scrapes) if each is self.stopped)
        ready = next(n for n, each in enumerate(self.all_scrapes) if each is self.before)
        return self.all_scrapes[ready:stopped]

    def settled(self, scrape: Scrape) -> bool:
        good, total, _unknown = scrape.sli(FLOW, "completeness")
        # Also compare end offsets: a lag of 0 may precede the last records.
        ends = values_by_partition(scrape, "mm2_source_end_offset", US_EU, self.topic)
        beat = scrape.value("mm2_heartbeat_age_seconds", flow=FLOW)
        # MirrorMaker 2 sends the first sync of a partition after the restart beside its copies.
        syncs = self.syncs(scrape)
        return (
            good == total == canary_value(scrape, US_EU, "sent_total")
            and beat is not None
            and beat < THRESHOLD
            and scrape.state(FLOW) in {"running", "idle"}
            and ends == {"0": 550, "1": 500, "2": 250}
            and lags(scrape, self.topic) == dict.fromkeys("012", 0)
            and (self.checkpoint_at(scrape) or 0) > self.started_again
            and len(syncs) == 3
            and all(sent > self.started_again for sent in syncs.values())
        )

    def checkpoint_at(self, scrape: Scrape) -> float | None:
        return scrape.value("mm2_checkpoint_last_timestamp_seconds", flow=FLOW, group=self.group)

    def syncs(self, scrape: Scrape) -> dict[str, float]:
        return values_by_partition(
            scrape, "mm2_offset_sync_last_timestamp_seconds", US_EU, self.topic
        )


STALLED = {"0": 1, "1": 1}


@pytest.fixture(scope="module")
def outage(lab: Lab) -> Iterator[StopOutage]:
    lab.cluster("us").admin.create_topic(StopOutage.topic, 3)
    flow = {
        "topics": [StopOutage.topic],
        "groups": [StopOutage.group],
        "stall_after": f"{STALL_AFTER:.0f}s",
        "slice": "4s",
        "freshness": [{"name": "orders", "topics": [".*"], "threshold": f"{THRESHOLD:.0f}s"}],
        "canary": {"deadline": f"{DEADLINE:.0f}s", "latency_tiers": ["2s", "5s"]},
    }
    with watch(lab, [FLOW], flow=flow, exporter={"instance": "stop-and-resume"}) as seen:
        found = StopOutage(lab, seen)
        found.run()
        yield found


def test_lag_records_grow_by_produced_records(outage: StopOutage) -> None:
    assert outage.before.value("mm2_flow_lag_records", flow=FLOW) == 0
    assert lags(outage.first_lag, outage.topic) == {"0": 300, "1": 200, "2": 0}
    assert outage.first_lag.value("mm2_flow_lag_records", flow=FLOW) == 500
    assert lags(outage.later, outage.topic) == {"0": 300, "1": 250, "2": 0}
    assert outage.later.value("mm2_flow_lag_records", flow=FLOW) == 550


def test_lag_seconds_grow_with_time(outage: StopOutage) -> None:
    earliest, latest = outage.produced_between
    for scrape in (outage.first_lag, outage.stalled, outage.later):
        seconds = scrape.value("mm2_flow_lag_seconds", flow=FLOW)
        assert seconds is not None
        # The arrival of the oldest unreplicated record is known within one poll.
        assert at(scrape) - latest - CYCLE <= seconds <= at(scrape) - earliest + CYCLE
    first, later = (
        values_by_partition(scrape, "mm2_replication_lag_seconds", US_EU, outage.topic)
        for scrape in (outage.first_lag, outage.later)
    )
    passed = at(outage.later) - at(outage.first_lag)
    assert passed > 10
    # Later records do not change the oldest unreplicated one.
    assert {p: later[p] - first[p] for p in "01"} == pytest.approx(dict.fromkeys("01", passed))
    assert later["2"] == first["2"] == 0


def test_stop_affects_availability_and_latency_only(outage: StopOutage) -> None:
    good, total, unknown = outage.after_stop.sli(FLOW, "availability")
    good_later, total_later, unknown_later = outage.later.sli(FLOW, "availability")
    assert (good_later - good, unknown_later - unknown) == (0, 0)
    assert total_later - total >= 10
    for tier in ("2s", "5s"):
        in_time, _, _ = outage.after_stop.sli(FLOW, "latency", tier)
        assert outage.later.sli(FLOW, "latency", tier) == (in_time, total_later, unknown_later)
    # After the first deadline one canary per second is settled.
    since = outage.stopped.sli(FLOW, "availability")[1]
    passed = at(outage.later) - at(outage.stopped)
    assert total_later - since == pytest.approx(passed, abs=STALL)


def test_completeness_is_pending_without_proof_of_loss(outage: StopOutage) -> None:
    assert outage.later.sli(FLOW, "completeness") == outage.after_stop.sli(FLOW, "completeness")
    sent = canary_value(outage.later, US_EU, "sent_total") - canary_value(
        outage.after_stop, US_EU, "sent_total"
    )
    grown = canary_value(outage.later, US_EU, "pending") - canary_value(
        outage.after_stop, US_EU, "pending"
    )
    # At both times canaries may be due and not acknowledged.
    assert grown == pytest.approx(sent, abs=STALL)
    assert canary_value(outage.later, US_EU, "pending") >= 10


def test_flow_is_stopped_after_stall_time(outage: StopOutage) -> None:
    last_arrival = canary_value(outage.stopped, US_EU, "last_arrival_timestamp_seconds")
    # The timeout starts at the last arrival; it equals the deadline if that is below 30 s.
    assert at(outage.stopped) - last_arrival >= DEADLINE
    before = outage.scrapes_before_stopped_state()
    assert at(before[-1]) - last_arrival <= DEADLINE + 1 + CYCLE
    assert all(s.state(FLOW) in {"running", "idle"} for s in before)


def test_stalled_partitions_are_reported(outage: StopOutage) -> None:
    assert values_by_partition(outage.later, "mm2_partition_stalled", US_EU, outage.topic) == {
        **STALLED,
        "2": 0,
    }
    assert outage.later.value("mm2_stalled_partitions", flow=FLOW, topic=outage.topic) == 2


def test_data_freshness_is_bad_for_partitions_with_lag(outage: StopOutage) -> None:
    good, total, unknown = outage.stalled.sli(FLOW, "data_freshness", "orders")
    good_later, total_later, unknown_later = outage.later.sli(FLOW, "data_freshness", "orders")
    # Three events per slice, one per partition; the third partition has no lag, so it is good.
    assert (total_later - total) % 3 == 0
    assert good_later - good == (total_later - total) / 3 > 0
    assert unknown_later == unknown


def test_flow_recovers_after_restart(outage: StopOutage) -> None:
    end = outage.caught_up
    assert end.value("mm2_flow_lag_records", flow=FLOW) == 0
    assert end.value("mm2_flow_lag_seconds", flow=FLOW) == 0
    stalled = values_by_partition(end, "mm2_partition_stalled", US_EU, outage.topic)
    assert stalled == dict.fromkeys("012", 0)
    replicated = values_by_partition(end, "mm2_replicated_source_offset", US_EU, outage.topic)
    assert replicated == {"0": 550, "1": 500, "2": 250}
    beat = end.value("mm2_heartbeat_age_seconds", flow=FLOW)
    checkpoint = end.value("mm2_checkpoint_age_seconds", flow=FLOW, group=outage.group)
    written = outage.checkpoint_at(end)
    assert beat is not None
    assert written is not None
    assert 0 <= beat < THRESHOLD
    assert outage.started_again < written <= at(end)
    assert checkpoint == pytest.approx(at(end) - written, abs=0.01)
    syncs = outage.syncs(end)
    assert len(syncs) == 3
    assert all(outage.started_again < sent <= at(end) for sent in syncs.values())


def test_canaries_sent_during_stop_are_late_not_lost(outage: StopOutage) -> None:
    end = outage.caught_up
    sent = canary_value(end, US_EU, "sent_total")
    assert end.sli(FLOW, "completeness") == (sent, sent, 0)
    good, total, unknown = end.sli(FLOW, "availability")
    assert (total, unknown) == (sent, 0)
    assert canary_value(end, US_EU, "late_total") == total - good >= 10
    assert canary_value(end, US_EU, "lost_total") == canary_value(end, US_EU, "expired_total") == 0
    assert canary_value(end, US_EU, "received_total") == sent


def test_counters_never_decrease(outage: StopOutage) -> None:
    assert len(outage.all_scrapes) > 10
    assert counters_never_decreased(outage.all_scrapes) == []
