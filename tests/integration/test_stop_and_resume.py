"""MirrorMaker 2 stops and comes back: every figure of it, in figures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from exporter_watch import counters_never_decreased, watch

from mm2slo_kafka.traffic import Load, consume_and_commit, produce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exporter_watch import Scrape, Watch

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("fault-lab")]

FLOW = "us->eu"
DEADLINE, STALL_AFTER, THRESHOLD = 5.0, 5.0, 3.0
CYCLE = 3.0
"""A round of the exporter (0.5 s) and what a busy machine adds."""


def at(scrape: Scrape) -> float:
    """The moment of the evaluation: MirrorMaker 2's newest heartbeat and its age, added up."""
    newest = scrape.value("mm2_heartbeat_last_timestamp_seconds", flow=FLOW)
    age = scrape.value("mm2_heartbeat_age_seconds", flow=FLOW)
    assert newest is not None
    assert age is not None
    return newest + age


def canaries(scrape: Scrape, fate: str) -> float:
    value = scrape.value(f"mm2_canary_{fate}", flow=FLOW)
    assert value is not None, fate
    return value


def by_partition(scrape: Scrape, metric: str, topic: str) -> dict[str, float]:
    found = scrape.values(metric, flow=FLOW, topic=topic)
    return {dict(labels)["partition"]: value for labels, value in found.items()}


def lags(scrape: Scrape, topic: str) -> dict[str, float]:
    return by_partition(scrape, "mm2_replication_lag_records", topic)


class Story:
    """One stop and one return, scraped at the moments that matter."""

    topic = "stop-and-resume"
    group = "stop-and-resume-readers"
    before: Scrape
    after_stop: Scrape
    first_lag: Scrape
    stopped: Scrape
    later: Scrape
    resumed: Scrape
    caught_up: Scrape
    all_scrapes: list[Scrape]
    waiting_since: tuple[float, float]
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

    def tell(self) -> None:
        self.seen.until_ready()
        self.produce(100, 100, 100)
        consume_and_commit(self.us.librdkafka(), self.topic, self.group, 150)
        self.until_lag(0, 0, 0)
        self.before = self.seen.until(
            lambda s: canaries(s, "received_total") >= 3 and canaries(s, "pending") == 0,
            "canaries that arrive",
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
        self.after_stop = self.seen.until(
            lambda s: at(s) - canaries(s, "last_arrival_timestamp_seconds") > 2,
            "the last of what was copied",
        )
        start = time.time()
        self.produce(300, 200)
        self.waiting_since = (start, time.time())
        self.first_lag = self.until_lag(300, 200, 0)
        self.stopped = self.seen.until(lambda s: s.state(FLOW) == "stopped", "the stop to be told")
        self.seen.until(
            lambda s: by_partition(s, "mm2_partition_stalled", self.topic) == {**STALLED, "2": 0},
            "stalled partitions",
        )
        self.produce(0, 50)
        self.until_lag(300, 250, 0)
        bad = self.after_stop.sli(FLOW, "availability")[1] + 10
        self.later = self.seen.until(
            lambda s: s.sli(FLOW, "availability")[1] >= bad, "ten more overdue canaries"
        )

    def when_resumed(self) -> None:
        self.resumed = self.until_lag(0, 0, 0)
        self.produce(150, 150, 150)
        consume_and_commit(self.us.librdkafka(), self.topic, self.group, 1000)
        self.caught_up = self.seen.until(self.settled, "everything to be settled and fresh")

    def scrapes_before_the_stop_was_told(self) -> list[Scrape]:
        told = next(n for n, each in enumerate(self.all_scrapes) if each is self.stopped)
        ready = next(n for n, each in enumerate(self.all_scrapes) if each is self.before)
        return self.all_scrapes[ready:told]

    def settled(self, scrape: Scrape) -> bool:
        good, total, _unknown = scrape.sli(FLOW, "completeness")
        # A lag of 0 that was read before the last records came does not count.
        ends = by_partition(scrape, "mm2_source_end_offset", self.topic)
        ages = scrape.values("mm2_checkpoint_age_seconds", flow=FLOW, group=self.group)
        beat = scrape.value("mm2_heartbeat_age_seconds", flow=FLOW)
        return (
            good == total == canaries(scrape, "sent_total")
            and beat is not None
            and beat < THRESHOLD
            and scrape.state(FLOW) in {"running", "idle"}
            and ends == {"0": 550, "1": 500, "2": 250}
            and lags(scrape, self.topic) == dict.fromkeys("012", 0)
            and all(age < THRESHOLD for age in ages.values())
        )


STALLED = {"0": 1, "1": 1}


@pytest.fixture(scope="module")
def story(lab: Lab) -> Iterator[Story]:
    lab.cluster("us").admin.create_topic(Story.topic, 3)
    flow = {
        "topics": [Story.topic],
        "groups": [Story.group],
        "stall_after": f"{STALL_AFTER:.0f}s",
        "slice": "4s",
        "freshness": [{"name": "orders", "topics": [".*"], "threshold": f"{THRESHOLD:.0f}s"}],
        "canary": {"deadline": f"{DEADLINE:.0f}s", "latency_tiers": ["2s", "5s"]},
    }
    with watch(lab, [FLOW], flow=flow, exporter={"instance": "stop-and-resume"}) as seen:
        told = Story(lab, seen)
        told.tell()
        yield told


def test_lag_records_grow_by_produced_records(story: Story) -> None:
    assert story.before.value("mm2_flow_lag_records", flow=FLOW) == 0
    assert lags(story.first_lag, story.topic) == {"0": 300, "1": 200, "2": 0}
    assert story.first_lag.value("mm2_flow_lag_records", flow=FLOW) == 500
    assert lags(story.later, story.topic) == {"0": 300, "1": 250, "2": 0}
    assert story.later.value("mm2_flow_lag_records", flow=FLOW) == 550


def test_lag_seconds_grow_with_time(story: Story) -> None:
    earliest, latest = story.waiting_since
    for scrape in (story.first_lag, story.stopped, story.later):
        seconds = scrape.value("mm2_flow_lag_seconds", flow=FLOW)
        assert seconds is not None
        # The arrival of the oldest waiting record is known to within one poll.
        assert at(scrape) - latest - CYCLE <= seconds <= at(scrape) - earliest + CYCLE
    first, later = (
        by_partition(scrape, "mm2_replication_lag_seconds", story.topic)
        for scrape in (story.first_lag, story.later)
    )
    passed = at(story.later) - at(story.first_lag)
    assert passed > 10
    # Produced later, copied never: the oldest record is still the same one.
    assert {p: later[p] - first[p] for p in "01"} == pytest.approx(dict.fromkeys("01", passed))
    assert later["2"] == first["2"] == 0


def test_stop_affects_availability_and_latency_only(story: Story) -> None:
    good, total, unknown = story.after_stop.sli(FLOW, "availability")
    good_later, total_later, unknown_later = story.later.sli(FLOW, "availability")
    assert (good_later - good, unknown_later - unknown) == (0, 0)
    assert total_later - total >= 10
    for tier in ("2s", "5s"):
        assert story.later.sli(FLOW, "latency", tier)[0] == good
        assert story.later.sli(FLOW, "latency", tier)[1] == total_later
    # From the first deadline on: one canary a second, each settled at its own.
    since = story.stopped.sli(FLOW, "availability")[1]
    passed = at(story.later) - at(story.stopped)
    assert total_later - since == pytest.approx(passed, abs=CYCLE)


def test_completeness_is_pending_without_proof_of_loss(story: Story) -> None:
    assert story.later.sli(FLOW, "completeness") == story.after_stop.sli(FLOW, "completeness")
    sent = canaries(story.later, "sent_total") - canaries(story.after_stop, "sent_total")
    grown = canaries(story.later, "pending") - canaries(story.after_stop, "pending")
    # At either moment a canary may be scheduled and not acknowledged yet.
    assert grown == pytest.approx(sent, abs=2)
    assert grown >= 10


def test_flow_is_stopped_after_stall_time(story: Story) -> None:
    silent_since = canaries(story.stopped, "last_arrival_timestamp_seconds")
    # Silence starts with the last arrival; patience is the deadline, below 30 s.
    told_after = at(story.stopped) - silent_since
    assert DEADLINE <= told_after <= DEADLINE + 1 + CYCLE
    assert all(
        s.state(FLOW) in {"running", "idle"} for s in story.scrapes_before_the_stop_was_told()
    )


def test_stalled_partitions_are_reported(story: Story) -> None:
    assert by_partition(story.later, "mm2_partition_stalled", story.topic) == {**STALLED, "2": 0}
    assert story.later.value("mm2_stalled_partitions", flow=FLOW, topic=story.topic) == 2


def test_data_freshness_is_bad_for_partitions_with_lag(story: Story) -> None:
    good, total, unknown = story.stopped.sli(FLOW, "data_freshness", "orders")
    good_later, total_later, unknown_later = story.later.sli(FLOW, "data_freshness", "orders")
    # Three partition-slices a slice: of the third partition, which has nothing to wait for, good.
    assert (total_later - total) % 3 == 0
    assert good_later - good == (total_later - total) / 3 > 0
    assert unknown_later == unknown


def test_flow_recovers_after_restart(story: Story) -> None:
    end = story.caught_up
    assert end.value("mm2_flow_lag_records", flow=FLOW) == 0
    assert end.value("mm2_flow_lag_seconds", flow=FLOW) == 0
    stalled = by_partition(end, "mm2_partition_stalled", story.topic)
    assert stalled == dict.fromkeys("012", 0)
    replicated = by_partition(end, "mm2_replicated_source_offset", story.topic)
    assert replicated == {"0": 550, "1": 500, "2": 250}
    beat = end.value("mm2_heartbeat_age_seconds", flow=FLOW)
    checkpoint = end.value("mm2_checkpoint_age_seconds", flow=FLOW, group=story.group)
    assert beat is not None
    assert checkpoint is not None
    assert 0 <= beat < THRESHOLD
    assert 0 <= checkpoint < THRESHOLD
    syncs = by_partition(end, "mm2_offset_sync_age_seconds", story.topic)
    assert len(syncs) == 3
    # Each is of after the return, however long that is ago.
    assert all(0 <= age < at(end) - story.started_again for age in syncs.values())


def test_canaries_sent_during_stop_are_late_not_lost(story: Story) -> None:
    end = story.caught_up
    sent = canaries(end, "sent_total")
    assert end.sli(FLOW, "completeness") == (sent, sent, 0)
    good, total, unknown = end.sli(FLOW, "availability")
    assert (total, unknown) == (sent, 0)
    assert canaries(end, "late_total") == total - good >= 10
    assert canaries(end, "lost_total") == canaries(end, "expired_total") == 0
    assert canaries(end, "received_total") == sent


def test_counters_never_decrease(story: Story) -> None:
    assert len(story.all_scrapes) > 50
    assert counters_never_decreased(story.all_scrapes) == []
