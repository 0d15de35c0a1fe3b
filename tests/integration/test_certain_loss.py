"""Records that retention removes before they are replicated are counted exactly once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from exporter_watch import watch
from flow_checks import create_replicated_topic
from topic_reader import count_copies

from mm2slo_kafka.traffic import Load, produce

if TYPE_CHECKING:
    from exporter_watch import Scrape

    from mm2slo_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("fault-lab")]

LOST = "mm2_retention_lost_records_total"
HEADROOM = "mm2_retention_headroom_records"
HEADROOM_SECONDS = "mm2_retention_headroom_seconds"
LAG = "mm2_replication_lag_records"
POSITION = "mm2_replicated_source_offset"
RETENTION = 7200.0


def test_certain_loss_equals_gap_after_restarts(faulty_lab: Lab, fresh_topic: str) -> None:
    lab, topic, unaffected = faulty_lab, fresh_topic, f"{fresh_topic}-unaffected"
    us = lab.cluster("us")
    for name in (topic, unaffected):
        create_replicated_topic(lab, name, 50)

    def lost(scrape: Scrape) -> dict[str, float | None]:
        return {name: scrape.value(LOST, topic=name) for name in (topic, unaffected)}

    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        at_rest = seen.until(lambda s: s.value(POSITION, topic=topic) == 50, "position 50")
        assert lost(at_rest) == {topic: 0, unaffected: 0}
        seen.until(lambda s: s.value("mm2_exporter_timeline_writer") == 1, "the timeline writer")
        lab.mm2.stop()
        for name in (topic, unaffected):
            produce(us.librdkafka(), name, Load(100, first=50))
        seen.until(lambda s: s.value(LAG, topic=topic) == 100, "a backlog of 100")
        us.admin.delete_records(topic, {0: 90})
        us.admin.delete_records(unaffected, {0: 30})
        # The log starts of the topics may be read in different cycles.
        counted = seen.until(
            lambda s: s.value(LOST, topic=topic) and s.value(HEADROOM, topic=unaffected) == 20,
            "a loss",
        )
        assert lost(counted) == {topic: 40, unaffected: 0}
        assert counted.value(HEADROOM, topic=topic) == -40
        assert counted.value(HEADROOM_SECONDS, topic=topic, limit="passed") == 0
        # Lost records no longer count as lag.
        assert counted.value(LAG, topic=topic) == 60
        assert counted.value(LAG, topic=unaffected) == 100
        assert counted.value(POSITION, topic=topic) == 50

    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        again = seen.after_cycles()
        assert lost(again) == {topic: 40, unaffected: 0}
        us.admin.delete_records(topic, {0: 100})
        more = seen.until(lambda s: s.value(LOST, topic=topic) != 40, "10 more lost records")
        assert lost(more) == {topic: 50, unaffected: 0}
        lab.mm2.start()
        done = seen.until(
            lambda s: s.value(POSITION, topic=topic) == s.value(POSITION, topic=unaffected) == 150,
            "both positions at the end",
        )
        assert lost(done) == {topic: 50, unaffected: 0}
        assert done.value(LAG, topic=topic) == 0
        # MM2 has replicated the same number: 150 produced, 50 lost.
        assert count_copies(lab, topic) == 150 - 50
        assert count_copies(lab, unaffected) == 150
        assert lost(seen.after_cycles()) == {topic: 50, unaffected: 0}

    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        assert lost(seen.after_cycles()) == {topic: 50, unaffected: 0}


@pytest.mark.long
def test_headroom_seconds_shrink_as_oldest_record_ages(faulty_lab: Lab, fresh_topic: str) -> None:
    lab, topic = faulty_lab, fresh_topic
    us = lab.cluster("us")
    create_replicated_topic(lab, topic, 10, configs={"retention.ms": str(int(RETENTION * 1000))})
    with watch(lab, ["us->eu"]) as seen:
        seen.until_ready()
        at_rest = seen.until(
            lambda s: s.value(HEADROOM_SECONDS, topic=topic, limit="time") is not None, "headroom"
        )
        assert at_rest.value(HEADROOM_SECONDS, topic=topic, limit="time") == RETENTION
        assert at_rest.value(HEADROOM, topic=topic) == 10
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
            headroom = scrape.value(HEADROOM_SECONDS, topic=topic, limit="time")
            age = scrape.value("mm2_replication_lag_seconds", topic=topic)
            assert headroom is not None
            assert age is not None
            assert headroom + age == pytest.approx(RETENTION, abs=1e-6)
        headroom = later.value(HEADROOM_SECONDS, topic=topic, limit="time")
        assert headroom is not None
        # The true age is within [now - after, now - before]; a scrape shows a cycle of at most
        # a poll interval and its duration ago, and the arrival time has the same uncertainty.
        assert RETENTION - (now - before) - 1.5 <= headroom <= RETENTION - (now - after) + 3.0
        assert later.value(HEADROOM, topic=topic) == 10
