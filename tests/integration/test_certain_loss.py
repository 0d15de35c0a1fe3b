"""Records that retention removes before MirrorMaker 2 has copied them are counted once, exactly."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from exporter_watch import watch
from topic_reader import count_copies

from mm2slo_kafka.traffic import Load, produce
from mm2slo_lab.condition_wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from exporter_watch import Scrape

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("fault-lab")]

LOST = "mm2_retention_lost_records_total"
ROOM = "mm2_retention_headroom_records"
ROOM_SECONDS = "mm2_retention_headroom_seconds"
LAG = "mm2_replication_lag_records"
POSITION = "mm2_replicated_source_offset"
RETENTION = 7200.0


@pytest.fixture
def stopped(lab: Lab) -> Iterator[Lab]:
    """A lab whose MM2 the test stops; it runs again afterwards."""
    yield lab
    if not lab.mm2.running:
        lab.mm2.start()


def replicated(lab: Lab, topic: str, count: int, configs: dict[str, str] | None = None) -> None:
    us = lab.cluster("us")
    us.admin.create_topic(topic, 1, configs or {})
    produce(us.librdkafka(), topic, Load(count))
    wait_for(lambda: count_copies(lab, topic) == count, f"{count} copies of {topic}")


def test_loss_is_the_gap_and_survives_restarts_of_either_process(
    stopped: Lab, fresh_topic: str
) -> None:
    lab, topic, spared = stopped, fresh_topic, f"{fresh_topic}-spared"
    us = lab.cluster("us")
    for name in (topic, spared):
        replicated(lab, name, 50)

    def lost(scrape: Scrape) -> dict[str, float | None]:
        return {name: scrape.value(LOST, topic=name) for name in (topic, spared)}

    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        at_rest = seen.until(lambda s: s.value(POSITION, topic=topic) == 50, "position 50")
        assert lost(at_rest) == {topic: 0, spared: 0}
        seen.until(lambda s: s.value("mm2_exporter_timeline_writer") == 1, "the timeline's lead")
        lab.mm2.stop()
        for name in (topic, spared):
            produce(us.librdkafka(), name, Load(100, first=50))
        seen.until(lambda s: s.value(LAG, topic=topic) == 100, "a backlog of 100")
        us.admin.delete_records(topic, {0: 90})
        us.admin.delete_records(spared, {0: 30})
        counted = seen.until(lambda s: s.value(LOST, topic=topic), "a loss")
        assert lost(counted) == {topic: 40, spared: 0}
        assert counted.value(ROOM, topic=topic) == -40
        assert counted.value(ROOM, topic=spared) == 20
        assert counted.value(ROOM_SECONDS, topic=topic, limit="passed") == 0
        # What is gone no longer waits.
        assert counted.value(LAG, topic=topic) == 60
        assert counted.value(LAG, topic=spared) == 100
        assert counted.value(POSITION, topic=topic) == 50

    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        again = seen.after_rounds()
        assert lost(again) == {topic: 40, spared: 0}
        us.admin.delete_records(topic, {0: 100})
        more = seen.until(lambda s: s.value(LOST, topic=topic) != 40, "ten records more")
        assert lost(more) == {topic: 50, spared: 0}
        lab.mm2.start()
        done = seen.until(
            lambda s: s.value(POSITION, topic=topic) == s.value(POSITION, topic=spared) == 150,
            "both positions at the end",
        )
        assert lost(done) == {topic: 50, spared: 0}
        assert done.value(LAG, topic=topic) == 0
        # The count of what MM2 copied says the same: 150 produced, 50 never came.
        assert count_copies(lab, topic) == 150 - 50
        assert count_copies(lab, spared) == 150
        assert lost(seen.after_rounds()) == {topic: 50, spared: 0}

    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        assert lost(seen.after_rounds()) == {topic: 50, spared: 0}


@pytest.mark.long
def test_headroom_in_seconds_shrinks_as_the_waiting_record_ages(
    stopped: Lab, fresh_topic: str
) -> None:
    lab, topic = stopped, fresh_topic
    us = lab.cluster("us")
    replicated(lab, topic, 10, {"retention.ms": str(int(RETENTION * 1000))})
    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        at_rest = seen.until(
            lambda s: s.value(ROOM_SECONDS, topic=topic, limit="time") is not None, "headroom"
        )
        assert at_rest.value(ROOM_SECONDS, topic=topic, limit="time") == RETENTION
        assert at_rest.value(ROOM, topic=topic) == 10
        lab.mm2.stop()
        before = time.time()
        produce(us.librdkafka(), topic, Load(5, first=10))
        after = time.time()
        first = seen.until(lambda s: s.value(LAG, topic=topic) == 5, "a backlog of 5")
        later = seen.until(
            lambda s: (s.value("mm2_replication_lag_seconds", topic=topic) or 0) >= 4, "age 4 s"
        )
        now = time.time()
        for scrape in (first, later):
            room = scrape.value(ROOM_SECONDS, topic=topic, limit="time")
            age = scrape.value("mm2_replication_lag_seconds", topic=topic)
            assert room is not None
            assert age is not None
            assert room + age == pytest.approx(RETENTION, abs=1e-6)
        room = later.value(ROOM_SECONDS, topic=topic, limit="time")
        assert room is not None
        # The true age lies within [now - after, now - before]; a scrape shows a round of at most
        # a poll interval and its duration ago, and the arrival's bracket is as wide again.
        assert RETENTION - (now - before) - 1.5 <= room <= RETENTION - (now - after) + 3.0
        assert later.value(ROOM, topic=topic) == 10
