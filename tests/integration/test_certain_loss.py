"""Records that are removed or skipped before they are replicated are counted exactly once."""

import time
from contextlib import ExitStack

import pytest
from exporter_watch import Scrape, Watch, counters_never_decreased, watch
from flow_checks import create_replicated_topic
from topic_reader import count_copies

from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

LOST = "mm2_retention_lost_records_total"
WRITER = "mm2_exporter_timeline_writer"
HEADROOM = "mm2_retention_headroom_records"
HEADROOM_SECONDS = "mm2_retention_headroom_seconds"
LAG = "mm2_replication_lag_records"
OBSERVED = "mm2_flow_observed_timestamp_seconds"
AGE = "mm2_replication_lag_seconds"
POSITION = "mm2_replicated_source_offset"
RETENTION = 7200.0


class LossyTopics:
    """Topics with 50 replicated records each, which lose records in different ways."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.lab, self.us = lab, lab.cluster("us")
        self.deleted = name
        """Loses 40, then 10 records by DeleteRecords."""
        self.unaffected = f"{name}-unaffected"
        self.hidden = f"{name}-hidden"
        """Loses 60 records before the first probe and the next reading of its log start."""
        self.expired = f"{name}-expired"
        """Loses 60 records by time."""
        self.recreated = f"{name}-recreated"
        """Is re-created with 80 records, of which MirrorMaker 2 skips 50."""
        self.names = (
            self.deleted,
            self.unaffected,
            self.hidden,
            self.expired,
            self.recreated,
        )
        for each in self.names:
            self.us.admin.create_topic(each, 1)
            self.produce(each, 50)
        wait_for(lambda: all(count_copies(lab, each) == 50 for each in self.names), "the copies")

    def produce(self, topic: str, count: int) -> None:
        produce(self.us.librdkafka(), topic, Load(count))

    def lost(self, scrape: Scrape) -> dict[str, float | None]:
        """The loss of topics with any."""
        found = {name: scrape.value(LOST, topic=name) for name in self.names}
        return {name: count for name, count in found.items() if count != 0}

    def positions(self, scrape: Scrape) -> list[float | None]:
        return [scrape.value(POSITION, topic=name) for name in self.names]


def log_start_readings(scrape: Scrape) -> float:
    name = "mm2_exporter_collect_duration_seconds_count"
    return scrape.value(name, cluster="us", stage="start_offsets") or 0


def flow_losses(scrape: Scrape) -> float:
    return sum(scrape.values(LOST, flow="us->eu").values())


def lose_part_of_backlogs(topics: LossyTopics, seen: Watch) -> None:
    """Stop MirrorMaker 2, and delete records of two topics with a backlog."""
    seen.until_ready()
    at_rest = seen.until(lambda s: topics.positions(s) == [50] * 5, "position 50")
    assert topics.lost(at_rest) == {}
    topics.lab.mm2.stop()
    deleted, unaffected = topics.deleted, topics.unaffected
    for name in (deleted, unaffected):
        topics.produce(name, 100)
    seen.until(lambda s: s.value(LAG, topic=deleted) == 100, "a backlog of 100")
    topics.us.admin.delete_records(deleted, {0: 90})
    topics.us.admin.delete_records(unaffected, {0: 30})
    # The log starts of the topics may be read in different cycles.
    counted = seen.until(
        lambda s: s.value(LOST, topic=deleted) and s.value(HEADROOM, topic=unaffected) == 20,
        "a loss",
    )
    assert topics.lost(counted) == {deleted: 40}
    assert counted.value(HEADROOM, topic=deleted) == -40
    assert counted.value(HEADROOM_SECONDS, topic=deleted, limit="passed") == 0
    # Lost records no longer count as lag.
    assert counted.value(LAG, topic=deleted) == 60
    assert counted.value(LAG, topic=unaffected) == 100
    assert counted.value(POSITION, topic=deleted) == 50


def take_over(topics: LossyTopics, follower: Watch) -> None:
    """Lose 5 more records once the leader is gone; the total never decreases."""
    follower.until(lambda s: s.value(WRITER) == 1, "the follower to lead")
    topics.us.admin.delete_records(topics.deleted, {0: 95})
    follower.until(lambda s: topics.lost(s) == {topics.deleted: 45}, "the loss of 5 more")
    decreased = counters_never_decreased(follower.scrapes)
    assert [each for each in decreased if each.startswith(LOST)] == []


def lose_all_before_first_probe(topics: LossyTopics, seen: Watch) -> dict[str, float]:
    """Let records come and go between two readings of log starts; returns the losses."""
    seen.until_ready()
    again = seen.after_cycles()
    assert topics.lost(again) == {topics.deleted: 45}
    admin = topics.us.admin
    admin.set_topic_configs(topics.expired, {"retention.ms": "100"})
    before = log_start_readings(again)
    seen.until(lambda s: log_start_readings(s) > before, "a reading of log starts")
    topics.produce(topics.hidden, 60)
    admin.delete_records(topics.hidden, {0: 110})
    topics.produce(topics.expired, 60)
    admin.delete_records(topics.deleted, {0: 100})
    admin.recreate_topic(topics.recreated)
    topics.produce(topics.recreated, 80)
    losses: dict[str, float] = {topics.deleted: 50, topics.hidden: 60, topics.expired: 60}
    counted = seen.until(lambda s: topics.lost(s) == losses, "the losses")
    for name in (topics.hidden, topics.expired):
        assert counted.value(HEADROOM, topic=name) == -60
        assert counted.value(LAG, topic=name) == 0
        assert (counted.value(AGE, topic=name) or 0) > 0
    return losses


def resume(topics: LossyTopics, seen: Watch, losses: dict[str, float]) -> Scrape:
    """Start MirrorMaker 2, and wait until everything is replicated and counted."""
    topics.lab.mm2.start()
    done = seen.until(
        lambda s: topics.positions(s) == [150, 150, 110, 110, 80], "all positions at the end"
    )
    for name in topics.names:
        assert done.value(LAG, topic=name) == done.value(AGE, topic=name) == 0
        assert (done.value(HEADROOM, topic=name) or 0) >= 0
    losses |= {topics.recreated: 50}
    seen.until(lambda s: topics.lost(s) == losses, "the skipped records")
    # All produced records without the lost ones.
    assert count_copies(topics.lab, topics.deleted) == 150 - 50
    assert count_copies(topics.lab, topics.unaffected) == 150
    assert count_copies(topics.lab, topics.hidden) == 110 - 60
    assert count_copies(topics.lab, topics.recreated) == 50 + 80 - 50
    settled = seen.after_cycles()
    assert topics.lost(settled) == losses
    return settled


def delete_topic_with_losses(topics: LossyTopics, seen: Watch, losses: float) -> None:
    """Check that totals at flow granularity do not go back when a topic is deleted.

    *losses* are those of the topics that exist; the total has deleted topics of other tests, too.
    """
    seen.until_ready()
    restored = seen.after_cycles()
    assert flow_losses(restored) >= losses
    partitions = sum(restored.values("mm2_replicated_partitions").values())
    topics.us.admin.delete_topic(topics.deleted)
    seen.until(
        lambda s: sum(s.values("mm2_replicated_partitions").values()) == partitions - 1,
        "the deletion",
    )
    assert flow_losses(seen.after_cycles()) == flow_losses(restored)


def test_certain_loss_equals_gap_after_restarts(faulty_lab: Lab, fresh_topic: str) -> None:
    lab = faulty_lab
    topics = LossyTopics(lab, fresh_topic)
    with ExitStack() as after:
        with watch(lab, ["us->eu"]) as leader:
            leader.until(lambda s: s.value(WRITER) == 1, "the writer")
            follower = after.enter_context(
                watch(lab, ["us->eu"], exporter={"instance": "follower"})
            )
            follower.until_ready()
            lose_part_of_backlogs(topics, leader)
            follower.until(lambda s: topics.lost(s) == {topics.deleted: 40}, "the leader's loss")
        take_over(topics, follower)
    with watch(lab, ["us->eu"], exporter={"start_offsets_interval": "3s"}) as seen:
        losses = lose_all_before_first_probe(topics, seen)
        settled = resume(topics, seen, losses)
    with watch(lab, ["us->eu"], exporter={"granularity": "flow"}) as seen:
        delete_topic_with_losses(topics, seen, flow_losses(settled))


@pytest.mark.long
def test_headroom_seconds_shrink_as_oldest_record_ages(faulty_lab: Lab, fresh_topic: str) -> None:
    lab, topic = faulty_lab, fresh_topic
    us = lab.cluster("us")
    create_replicated_topic(lab, topic, 10, configs={"retention.ms": str(int(RETENTION * 1000))})
    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        # Copies arrive before MirrorMaker 2 commits them.
        at_rest = seen.until(lambda s: s.value(LAG, topic=topic) == 0, "a replicated topic")
        assert at_rest.value(HEADROOM_SECONDS, topic=topic, limit="time") == RETENTION
        assert at_rest.value(HEADROOM, topic=topic) == 10
        lab.mm2.stop()
        stopped = time.time()
        # The second of these rounds started after the stop, so that arrivals are after it, too.
        observed = seen.until(lambda s: (s.value(OBSERVED) or 0) > stopped, "a round").value(
            OBSERVED
        )
        seen.until(lambda s: s.value(OBSERVED) not in (None, observed), "a round after it")
        produce(us.librdkafka(), topic, Load(5, first=10))
        after = time.time()
        first = seen.until(lambda s: s.value(LAG, topic=topic) == 5, "a backlog of 5")
        later = seen.until(
            lambda s: (s.value("mm2_replication_lag_seconds", topic=topic) or 0) >= 4, "age 4 s"
        )
        for scrape in (first, later):
            headroom = scrape.value(HEADROOM_SECONDS, topic=topic, limit="time")
            age = scrape.value("mm2_replication_lag_seconds", topic=topic)
            assert headroom is not None
            assert age is not None
            assert headroom + age == pytest.approx(RETENTION, abs=1e-6)
        headroom, at = (
            later.value(HEADROOM_SECONDS, topic=topic, limit="time"),
            later.value(OBSERVED),
        )
        assert headroom is not None
        assert at is not None
        assert RETENTION - (at - stopped) <= headroom <= RETENTION - (at - after)
        assert later.value(HEADROOM, topic=topic) == 10
