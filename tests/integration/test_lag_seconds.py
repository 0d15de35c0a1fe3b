"""Lag in seconds after a restart of the exporter: from the timeline, or from the record."""

import json
import time
from collections.abc import Iterator

import pytest
from exporter_watch import Scrape, Watch, watch
from topic_reader import read_topic

from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

AGE = "mm2_replication_lag_seconds"
LAG = "mm2_replication_lag_records"


@pytest.fixture(scope="module")
def stopped(lab: Lab) -> Iterator[Lab]:
    """The lab with MM2 stopped, without a backlog of other tests."""
    with watch(lab, ["us->eu"]) as seen:
        seen.until(lambda s: s.value("mm2_flow_lag_records", flow="us->eu") == 0, "no lag")
    lab.mm2.stop()
    yield lab
    lab.mm2.start()


@pytest.fixture
def backlog_topic(stopped: Lab, fresh_topic: str) -> Iterator[str]:
    """A topic that is not replicated; deleted afterwards, so that only one topic has lag."""
    us = stopped.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    yield fresh_topic
    us.admin.delete_topic(fresh_topic)


def origins(scrape: Scrape) -> dict[str, float]:
    """Number of partitions whose lag has an age, by its origin: expired records have none."""
    found = scrape.values("mm2_lag_seconds_origin_partitions", flow="us->eu")
    return {
        origin: count
        for labels, count in found.items()
        if count and (origin := dict(labels)["origin"]) not in {"no_backlog", "absent"}
    }


def wait_only_backlog(seen: Watch, topic: str, origin: str) -> None:
    """Wait until only *topic* has lag: 10 records, with the age from *origin*.

    Markers at the ends of other topics count as lag until they are first read.
    """
    scrape = seen.until(
        lambda s: s.value(LAG, topic=topic) == 10 and origins(s) == {origin: 1},
        f"10 records with the age from {origin}",
    )
    assert scrape.value(AGE, topic=topic) is not None


def age_now(seen: Watch, topic: str) -> tuple[float, float]:
    """Time of the newest cycle, and its lag in seconds."""
    (report,) = seen.exporter.reports()
    (found,) = (each for each in report.topics if each.pair.source == topic)
    age = found.partitions[0].lag_seconds
    assert age is not None
    return report.at, age


def bracket(lab: Lab, topic: str, offset: int) -> tuple[float, float]:
    """Bounds of the arrival of *offset* on the source: [previous request, response]."""
    for record in read_topic(lab.cluster("eu").librdkafka(), "mm2slo.watermarks.internal"):
        poll = json.loads(record.value() or b"{}")
        if (poll["f"], poll["s"], poll["t"]) != ("us->eu", "source", topic):
            continue
        if poll["e"][0] > offset:
            requested, answered, before, _ = poll["q"]
            return (requested - before) / 1000, (requested + answered) / 1000
    raise AssertionError(f"the timeline does not know offset {offset} of {topic}")


@pytest.mark.long
def test_lag_seconds_after_restart_come_from_timeline(stopped: Lab, backlog_topic: str) -> None:
    us = stopped.cluster("us")
    with watch(stopped, ["us->eu"]) as seen:
        seen.until_ready()
        seen.until(lambda s: s.value("mm2_exporter_timeline_writer") == 1, "the timeline writer")
        seen.until(lambda s: s.value(LAG, topic=backlog_topic) == 0, "the topic")
        # The topic is idle for many polls before its records arrive.
        seen.after_cycles(10)
        started = time.time()
        produce(us.librdkafka(), backlog_topic, Load(10))
        ended = time.time()
        wait_only_backlog(seen, backlog_topic, "history")
        seen.after_cycles()
    earliest, latest = bracket(stopped, backlog_topic, 0)
    # Arrived within [started, ended] by the same clock; times are in whole milliseconds.
    assert earliest <= ended
    assert started <= latest + 0.001
    # The poll interval is 0.5 s.
    assert latest - earliest < 2.0

    with watch(stopped, ["us->eu"]) as seen:
        seen.until_ready()
        wait_only_backlog(seen, backlog_topic, "history")
        at, age = age_now(seen, backlog_topic)
        assert at - latest - 0.002 <= age <= at - earliest + 0.002
        published = seen.scrape().value(AGE, topic=backlog_topic)
        assert published is not None
        assert published >= age


@pytest.mark.parametrize("timeline", [True, False], ids=["timeline", "no-timeline"])
def test_lag_seconds_before_timeline_come_from_record(
    stopped: Lab, backlog_topic: str, *, timeline: bool
) -> None:
    us = stopped.cluster("us")
    produce(us.librdkafka(), backlog_topic, Load(10))
    stamped = read_topic(us.librdkafka(), backlog_topic)[0].timestamp()[1] / 1000
    with watch(stopped, ["us->eu"], exporter={"timeline": {"enabled": timeline}}) as seen:
        seen.until_ready()
        wait_only_backlog(seen, backlog_topic, "record")
        at, age = age_now(seen, backlog_topic)
        assert age == pytest.approx(at - stamped, abs=1e-6)
