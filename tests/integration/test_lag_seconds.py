"""Lag in seconds over a restart of the exporter: from the timeline, or from the record itself."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from exporter_watch import watch
from topic_reader import count_copies, read_topic

from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab.condition_wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exporter_watch import Scrape, Watch

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

AGE = "mm2_replication_lag_seconds"
LAG = "mm2_replication_lag_records"


@pytest.fixture(scope="module")
def stopped(lab: Lab) -> Iterator[Lab]:
    """MM2 does not run."""
    wait_for(lambda: count_copies(lab, "heartbeats") > 0, "the lab to copy")
    lab.mm2.stop()
    yield lab
    lab.mm2.start()


@pytest.fixture
def waiting(stopped: Lab, fresh_topic: str) -> Iterator[str]:
    """A topic that nothing copies; gone afterwards, so that one topic waits at a time."""
    us = stopped.cluster("us")
    us.admin.create_topic(fresh_topic, 1)
    yield fresh_topic
    us.admin.delete_topic(fresh_topic)


def origins(scrape: Scrape) -> dict[str, float]:
    """Partitions by the origin of their lag, those without lag left out."""
    found = scrape.values("mm2_lag_seconds_origin_partitions", flow="us->eu")
    return {
        origin: count
        for labels, count in found.items()
        if count and (origin := dict(labels)["origin"]) != "no_backlog"
    }


def only_here(seen: Watch, topic: str, origin: str) -> None:
    """Wait until ten records wait in *topic* alone, their age told by *origin*.

    Markers at the ends of other topics seem to wait until the first look at them.
    """
    told = seen.until(
        lambda s: s.value(LAG, topic=topic) == 10 and origins(s) == {origin: 1},
        f"ten records, aged by {origin}",
    )
    assert told.value(AGE, topic=topic) is not None


def age_now(seen: Watch, topic: str) -> tuple[float, float]:
    """The moment of the newest round and the age that it tells."""
    (report,) = seen.exporter.reports()
    (found,) = (each for each in report.topics if each.pair.source == topic)
    age = found.partitions[0].lag_seconds
    assert age is not None
    return report.at, age


def bracket(lab: Lab, topic: str, offset: int) -> tuple[float, float]:
    """When *offset* arrived on the source, by the timeline topic: [previous request, answer]."""
    for record in read_topic(lab.cluster("eu").librdkafka(), "mm2slo.watermarks.internal"):
        poll = json.loads(record.value() or b"{}")
        if (poll["f"], poll["s"], poll["t"]) != ("us->eu", "source", topic):
            continue
        if poll["e"][0] > offset:
            requested, answered, before, _ = poll["q"]
            return (requested - before) / 1000, (requested + answered) / 1000
    raise AssertionError(f"the timeline does not know offset {offset} of {topic}")


@pytest.mark.long
def test_lag_seconds_after_restart_come_from_timeline(stopped: Lab, waiting: str) -> None:
    us = stopped.cluster("us")
    with watch(stopped, ["us->eu"]) as seen:
        seen.until_ready()
        seen.until(lambda s: s.value("mm2_exporter_timeline_writer") == 1, "the timeline's lead")
        seen.until(lambda s: s.value(LAG, topic=waiting) == 0, "the topic")
        # The topic has stood still for many polls when its records come.
        seen.after_rounds(10)
        started = time.time()
        produce(us.librdkafka(), waiting, Load(10))
        ended = time.time()
        only_here(seen, waiting, "history")
        seen.after_rounds()
    earliest, latest = bracket(stopped, waiting, 0)
    # Arrived within [started, ended], by the same clock; times are written in whole milliseconds.
    assert earliest <= ended
    assert started <= latest + 0.001
    # A poll is half a second after the one before.
    assert latest - earliest < 2.0

    with watch(stopped, ["us->eu"]) as seen:
        seen.until_ready()
        only_here(seen, waiting, "history")
        at, age = age_now(seen, waiting)
        assert at - latest - 0.002 <= age <= at - earliest + 0.002
        published = seen.scrape().value(AGE, topic=waiting)
        assert published is not None
        assert published >= age


@pytest.mark.parametrize("timeline", [True, False], ids=["timeline", "no-timeline"])
def test_lag_seconds_before_timeline_come_from_record(
    stopped: Lab, waiting: str, *, timeline: bool
) -> None:
    us = stopped.cluster("us")
    produce(us.librdkafka(), waiting, Load(10))
    stamped = read_topic(us.librdkafka(), waiting)[0].timestamp()[1] / 1000
    with watch(stopped, ["us->eu"], exporter={"timeline": {"enabled": timeline}}) as seen:
        seen.until_ready()
        only_here(seen, waiting, "record")
        at, age = age_now(seen, waiting)
        assert age == pytest.approx(at - stamped, abs=1e-6)
