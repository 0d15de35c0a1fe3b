"""Lag, state and members of consumer groups on both clusters, compared with plain clients."""

import time

import pytest
from confluent_kafka import Consumer, TopicPartition
from exporter_watch import Scrape, watch
from lab_dashboards import CommittingGroup
from topic_reader import count_copies

from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("quiet-lab")]


def independent_lag(lab: Lab, cluster: str, topic: str, group: str) -> int:
    """End offsets minus committed offsets, by a consumer of that group."""
    consumer = Consumer({**lab.cluster(cluster).librdkafka(), "group.id": group, "log_level": 2})
    lag = 0
    for each in consumer.committed([TopicPartition(topic, number) for number in range(2)], 30):
        _start, end = consumer.get_watermark_offsets(each, 30)
        lag += end - each.offset
    consumer.close()
    return lag


def test_group_lag_equals_that_of_plain_clients_on_both_clusters(
    lab: Lab, fresh_topic: str
) -> None:
    us, eu = lab.cluster("us"), lab.cluster("eu")
    group, moved, copy = f"{fresh_topic}-app", f"{fresh_topic}-moved", f"us.{fresh_topic}"
    us.admin.create_topic(fresh_topic, 2)
    for partition in (0, 1):
        produce(us.librdkafka(), fresh_topic, Load(100, partition=partition))
    wait_for(lambda: count_copies(lab, fresh_topic) >= 200, "copies")
    for alias, name in (("us", fresh_topic), ("eu", copy)):
        commit(lab.cluster(alias).librdkafka(), name, group, {0: 100, 1: 40})

    def lag(seen: Scrape, cluster: str, unit: str = "records") -> float | None:
        labels = {"flow": "us->eu", "cluster": cluster, "group": group, "topic": fresh_topic}
        return seen.value(f"mm2_group_lag_{unit}", **labels)

    with (
        CommittingGroup(eu.librdkafka(), copy, moved),
        watch(lab, ["us->eu"], exporter={"group_members_interval": "1s"}) as seen,
    ):
        found = seen.until(lambda s: (lag(s, "us"), lag(s, "eu")) == (60, 60), "a lag of 60")
        # Those records are older than the exporter.
        assert (lag(found, "us", "seconds"), lag(found, "eu", "seconds")) == (None, None)
        for alias, name in (("us", fresh_topic), ("eu", copy)):
            commit(lab.cluster(alias).librdkafka(), name, group, {0: 100, 1: 100})
        before = time.time()
        seen.until(lambda s: (lag(s, "us"), lag(s, "eu")) == (0, 0), "no lag")
        seen.after_cycles()
        produce(us.librdkafka(), fresh_topic, Load(30, partition=0))
        wait_for(lambda: count_copies(lab, fresh_topic) >= 230, "copies")
        found = seen.until(lambda s: (lag(s, "us"), lag(s, "eu")) == (30, 30), "a lag of 30")
        for cluster, name in (("us", fresh_topic), ("eu", copy)):
            assert independent_lag(lab, cluster, name, group) == 30
        # The age grows with each reading, whose time is at most the scrape's.
        found = seen.until(
            lambda s: min(lag(s, "us", "seconds") or 0, lag(s, "eu", "seconds") or 0) > 1,
            "an age of more than a second",
        )
        # They arrived after the poll that preceded the one that saw no lag.
        oldest = time.time() - before
        assert max(lag(found, "us", "seconds") or 0, lag(found, "eu", "seconds") or 0) < oldest
        here = {"flow": "us->eu", "group": moved, "cluster": "eu"}
        found = seen.until(lambda s: s.value("mm2_group_members", **here) == 1, "one member")
        assert found.value("mm2_group_state", **here, state="stable") == 1
        there = {"flow": "us->eu", "group": group, "cluster": "us"}
        assert found.value("mm2_group_members", **there) == 0
        assert found.value("mm2_group_state", **there, state="empty") == 1
        caught_up = seen.until(
            lambda s: s.value("mm2_group_lag_records", **here, topic=fresh_topic) == 0,
            "the moved group to have no lag",
        )
        assert caught_up.value("mm2_group_lag_seconds", **here, topic=fresh_topic) == 0
