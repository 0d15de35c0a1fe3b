"""Offsets without records are not lag; foreign records and recreated topics are reported."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from exporter_watch import Scrape, Watch, watch
from topic_reader import count_copies, read_topic
from transactional_traffic import OpenTransaction, produce_in_transaction

from mm2slo_core.config.flow_config import DEFAULT_TOPICS_EXCLUDE
from mm2slo_core.topology import Flow
from mm2slo_lab import lab_faults
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

US_EU = Flow("us", "eu")
LAG = "mm2_replication_lag_records"
AGE = "mm2_replication_lag_seconds"
POSITION = "mm2_replicated_source_offset"
CYCLES_BEYOND_STALL = 5
"""Cycles of 500 ms: longer than the flow's stall_after of 2 s."""
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "100",
}


@dataclass(frozen=True)
class Mirror:
    """A lab whose MM2 reads with *isolation*; the topic *compacted* has gaps."""

    lab: Lab
    isolation: str
    seen: Watch
    compacted: str
    survivors: int

    def topic(self, kind: str) -> str:
        """A topic name of this mirror only."""
        return f"{kind}-{self.isolation}"


@pytest.fixture(
    scope="module",
    params=["read_uncommitted", pytest.param("read_committed", marks=pytest.mark.long)],
)
def mirror(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Mirror]:
    isolation: str = request.param
    topic = f"compacted-{isolation}"
    left = lab.cluster("us").admin.topics()
    lab.mm2.stop()
    survivors = compact(lab, topic)
    lab.mm2.configure({"us.consumer.isolation.level": isolation})
    lab.mm2.start()
    # Starting may take longer than the short stall_after below.
    wait_for(lambda: count_copies(lab, topic) > 0, "the copies")
    # Topics of earlier tests must not determine the flow's state.
    others = [re.escape(each) for each in left if each not in {topic, "heartbeats"}]
    settings = {
        "isolation": isolation,
        "stall_after": "2s",
        "topics_exclude": [*DEFAULT_TOPICS_EXCLUDE, *others],
    }
    with watch(lab, ["us->eu"], flow=settings) as seen:
        seen.until_ready()
        yield Mirror(lab, isolation, seen, topic, survivors)
    lab.mm2.configure({})
    if isolation != "read_uncommitted":
        lab.mm2.restart()


def compact(lab: Lab, topic: str) -> int:
    """Fill a topic of 1,000 offsets, wait for compaction, and return the remaining record count."""
    us = lab.cluster("us")
    us.admin.create_topic(topic, 1, COMPACTED)
    keys = tuple(f"key-{number}" for number in range(10))
    produce(us.librdkafka(), topic, Load(980, keys=keys))

    def cleaned() -> bool:
        # Only the next record rolls a segment, and the active segment is never compacted.
        if us.admin.end_offsets(topic)[0] < 1_000:
            produce(us.librdkafka(), topic, Load(1, keys=keys))
        return len(read_topic(us.librdkafka(), topic)) < 200

    wait_for(cleaned, "the cleaner", poll=0.5)
    end = us.admin.end_offsets(topic)[0]
    if end < 1_000:
        produce(us.librdkafka(), topic, Load(1_000 - end, keys=keys))
    return len(read_topic(us.librdkafka(), topic))


def at_rest(seen: Watch, topic: str, end: int) -> Scrape:
    """Wait until the position is *end*, and check that there is no lag."""
    found = seen.until(lambda s: s.value(POSITION, topic=topic) == end, f"position {end}")
    assert found.value("mm2_source_end_offset", topic=topic) == end
    assert found.value(LAG, topic=topic) == 0
    assert found.value(AGE, topic=topic) == 0
    return found


def since(seen: Watch, first: Scrape) -> list[Scrape]:
    """Scrapes from *first* on."""
    return seen.scrapes[seen.scrapes.index(first) :]


def assert_never_stalled(scrapes: Sequence[Scrape], topic: str) -> None:
    """Check that no scrape reports the idle topic as stalled or the flow as stopped."""
    for scrape in scrapes:
        assert 1 not in scrape.values("mm2_partition_stalled", topic=topic).values()
        assert scrape.state("us->eu") != "stopped"


@pytest.fixture(scope="module")
def idle_scrapes(mirror: Mirror) -> Sequence[Scrape]:
    """Scrapes of several kinds of idle topics until after stall_after."""
    us, seen = mirror.lab.cluster("us"), mirror.seen
    marker, aborted, idle = (mirror.topic(kind) for kind in ("marker", "aborted", "idle"))
    for topic, partitions in ((marker, 1), (aborted, 1), (idle, 2)):
        create_with_copy(mirror.lab, topic, partitions)
    produce_in_transaction(us.librdkafka(), marker, Load(10), transactional_id=marker)
    produce(us.librdkafka(), aborted, Load(10))
    produce_in_transaction(us.librdkafka(), aborted, Load(5), transactional_id=aborted, abort=True)
    for topic, end in ((marker, 11), (aborted, 16), (mirror.compacted, 1_000)):
        at_rest(seen, topic, end)
    rest = seen.until(lambda s: len(s.values(LAG, topic=idle)) == 2, "the idle partitions")
    seen.after_cycles(CYCLES_BEYOND_STALL)
    return since(seen, rest)


def create_with_copy(lab: Lab, topic: str, partitions: int = 1) -> str:
    lab.cluster("us").admin.create_topic(topic, partitions)
    wait_for(lambda: lab.cluster("eu").admin.partition_count(f"us.{topic}") > 0, "the copy")
    return topic


def test_commit_marker_at_end_is_not_lag(mirror: Mirror, idle_scrapes: Sequence[Scrape]) -> None:
    topic = mirror.topic("marker")
    at_rest(mirror.seen, topic, 11)
    assert count_copies(mirror.lab, topic) == 10
    assert_never_stalled(idle_scrapes, topic)


def test_aborted_batch_at_end_is_not_lag(mirror: Mirror, idle_scrapes: Sequence[Scrape]) -> None:
    topic = mirror.topic("aborted")
    expected = 15 if mirror.isolation == "read_uncommitted" else 10
    at_rest(mirror.seen, topic, 16)
    assert count_copies(mirror.lab, topic) == expected
    assert_never_stalled(idle_scrapes, topic)
    # Records after the batch are replicated.
    produce(mirror.lab.cluster("us").librdkafka(), topic, Load(3))
    at_rest(mirror.seen, topic, 19)
    assert count_copies(mirror.lab, topic) == expected + 3


def test_open_transaction_is_distinguished_from_lag(mirror: Mirror, fresh_topic: str) -> None:
    us = mirror.lab.cluster("us")
    topic = create_with_copy(mirror.lab, fresh_topic)
    produce(us.librdkafka(), topic, Load(10))
    with OpenTransaction(us.librdkafka(), topic, transactional_id=topic) as transaction:
        transaction.send(Load(5))
        if mirror.isolation == "read_committed":
            held = mirror.seen.until(
                lambda s: s.value("mm2_open_transaction_records", topic=topic) == 5, "5 held back"
            )
            position = 10
        else:
            wait_for(lambda: count_copies(mirror.lab, topic) == 15, "the copies")
            held = mirror.seen.until(lambda s: s.value(POSITION, topic=topic) == 15, "position 15")
            position = 15
        held = mirror.seen.until(
            lambda s: s.value(POSITION, topic=topic) == position, f"position {position}"
        )
        assert held.value("mm2_source_end_offset", topic=topic) == 15
        assert held.value(LAG, topic=topic) == 0
        assert held.value(AGE, topic=topic) == 0
        mirror.seen.after_cycles(CYCLES_BEYOND_STALL)
        assert_never_stalled(since(mirror.seen, held), topic)
        transaction.commit()
    at_rest(mirror.seen, topic, 16)
    assert count_copies(mirror.lab, topic) == 15


def test_gaps_of_compacted_topic_are_not_lag(
    mirror: Mirror, idle_scrapes: Sequence[Scrape]
) -> None:
    topic = mirror.compacted
    at_rest(mirror.seen, topic, 1_000)
    # Compaction may continue between the count and MM2's read.
    left = len(read_topic(mirror.lab.cluster("us").librdkafka(), topic))
    assert left <= count_copies(mirror.lab, topic) <= mirror.survivors < 300
    assert_never_stalled(idle_scrapes, topic)


def test_idle_topic_has_no_lag(mirror: Mirror, idle_scrapes: Sequence[Scrape]) -> None:
    topic = mirror.topic("idle")
    for seen in (*idle_scrapes, mirror.seen.scrape()):
        for metric in (LAG, AGE, "mm2_partition_stalled", POSITION):
            assert list(seen.values(metric, topic=topic).values()) == [0, 0], metric
        qualities = {dict(k)["quality"] for k in seen.values("mm2_position_quality", topic=topic)}
        assert qualities == {"not_started"}
    assert_never_stalled(idle_scrapes, topic)


def quality(scrape: Scrape, topic: str) -> str | None:
    return next(iter(scrape.active("quality", "mm2_position_quality", topic=topic)), None)


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    with watch(lab, ["us->eu"]) as watching:
        watching.until_ready()
        yield watching


def create_with_records(lab: Lab, topic: str, count: int) -> str:
    create_with_copy(lab, topic)
    produce(lab.cluster("us").librdkafka(), topic, Load(count))
    wait_for(lambda: count_copies(lab, topic) == count, "the copies")
    return topic


def test_foreign_record_is_reported_and_lag_is_exact(
    lab: Lab, seen: Watch, fresh_topic: str
) -> None:
    topic = create_with_records(lab, fresh_topic, 20)
    at_rest(seen, topic, 20)
    lab_faults.foreign_records(lab, US_EU, topic)
    foreign = seen.until(lambda s: quality(s, topic) == "foreign_writer", "a foreign writer")
    assert foreign.value("mm2_target_end_offset", topic=topic) == 21
    at_rest(seen, topic, 20)
    # The next offset sync gives the new position.
    produce(lab.cluster("us").librdkafka(), topic, Load(5, first=20))
    seen.until(lambda s: quality(s, topic) == "live", "a live position")
    at_rest(seen, topic, 25)


def recreations(scrape: Scrape, topic: str) -> dict[str, float | None]:
    return {
        side: scrape.value("mm2_topic_recreations_total", topic=topic, side=side)
        for side in ("source", "target")
    }


def test_recreated_source_topic_is_counted_without_loss(
    lab: Lab, seen: Watch, fresh_topic: str
) -> None:
    topic = create_with_records(lab, fresh_topic, 100)
    assert recreations(at_rest(seen, topic, 100), topic) == {"source": 0, "target": 0}
    us = lab.cluster("us")
    us.admin.delete_topic(topic)
    # The exporter's list of topics must have been without it once.
    seen.until(lambda s: not s.values("mm2_topic_info", topic=topic), "the deletion")
    us.admin.create_topic(topic, 1)
    produce(us.librdkafka(), topic, Load(30))
    recreated = seen.until(lambda s: recreations(s, topic)["source"] == 1, "a re-creation")
    assert recreations(recreated, topic) == {"source": 1, "target": 0}
    wait_for(lambda: count_copies(lab, topic) == 130, "the copies of the new topic")
    seen.until(lambda s: quality(s, topic) == "live", "a live position")
    done = at_rest(seen, topic, 30)
    assert recreations(done, topic) == {"source": 1, "target": 0}
    assert quality(done, topic) == "live"
    lost = {s.value("mm2_retention_lost_records_total", topic=topic) for s in seen.scrapes}
    assert lost <= {0, None}


def test_recreated_target_topic_is_counted(lab: Lab, seen: Watch, fresh_topic: str) -> None:
    topic = create_with_records(lab, fresh_topic, 40)
    at_rest(seen, topic, 40)
    lab.cluster("eu").admin.recreate_topic(f"us.{topic}")
    recreated = seen.until(lambda s: recreations(s, topic)["target"] == 1, "a re-creation")
    assert recreations(recreated, topic) == {"source": 0, "target": 1}
    emptied = seen.until(lambda s: quality(s, topic) == "target_reset", "a reset")
    assert emptied.value("mm2_target_end_offset", topic=topic) == 0
    at_rest(seen, topic, 40)
    produce(lab.cluster("us").librdkafka(), topic, Load(5, first=40))
    wait_for(lambda: count_copies(lab, topic) == 5, "the new copies")
    seen.until(lambda s: quality(s, topic) == "live", "a live position")
    done = at_rest(seen, topic, 45)
    assert recreations(done, topic) == {"source": 0, "target": 1}
    lost = {s.value("mm2_retention_lost_records_total", topic=topic) for s in seen.scrapes}
    assert lost <= {0, None}
