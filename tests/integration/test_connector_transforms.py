"""Transforms of a real MirrorSourceConnector: dropped records, renamed copies, a hanging task."""

from collections.abc import Callable

import pytest
from confluent_kafka import Producer
from exporter_watch import Scrape, watch

from mm2slo_core.topology import Flow
from mm2slo_lab.lab_faults import dropping
from mm2slo_lab.lab_topology import LabTopology
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("fault-lab")]

US_EU = Flow("us", "eu")
FLOW = US_EU.label
FLUSH = 5
MARK = "gone"
KAFKA = "org.apache.kafka.connect.transforms."
ROUTE = {
    "transforms": "drop,move,other",
    "transforms.move.type": f"{KAFKA}RegexRouter",
    "transforms.move.regex": r"us\.(moved|lost)",
    "transforms.move.replacement": "eu-$1",
    # With a predicate on records it is not known which copies it renames.
    "transforms.other.type": f"{KAFKA}RegexRouter",
    "transforms.other.regex": r"us\.either",
    "transforms.other.replacement": "eu-either",
    "transforms.other.predicate": "marked",
}
PROPERTIES = {
    **dropping(US_EU, MARK),
    **{f"{FLOW}.{key}": value for key, value in ROUTE.items()},
    f"{FLOW}.topics": "orders, moved, lost, either",
    "offset.flush.interval.ms": str(FLUSH * 1000),
}
SETTINGS = {
    "topics": ["orders", "moved", "lost", "either", "unselected"],
    "offset_flush_interval": f"{FLUSH}s",
    "stall_after": "10s",
}


def send(lab: Lab, topic: str, count: int, *, dropped: bool = False) -> None:
    producer = Producer(lab.cluster("us").librdkafka())
    for _ in range(count):
        producer.produce(topic, b"v", partition=0, headers=[(MARK, b"")] if dropped else None)
    assert producer.flush(60) == 0


def quality(scrape: Scrape, topic: str) -> str | None:
    return next(iter(scrape.by("quality", "mm2_position_quality", flow=FLOW, topic=topic)), None)


def lag(scrape: Scrape, topic: str) -> float | None:
    return scrape.value("mm2_replication_lag_records", flow=FLOW, topic=topic)


def copies(scrape: Scrape) -> dict[str, str]:
    found = map(dict, scrape.values("mm2_topic_info", flow=FLOW))
    return {each["topic"]: each["target_topic"] for each in found}


def test_exporter_follows_the_transforms_of_the_running_connector(
    lab_factory: Callable[[LabTopology], Lab],
) -> None:
    lab = lab_factory(LabTopology(flows=(US_EU, US_EU.reverse), mm2_properties=PROPERTIES))
    for topic in SETTINGS["topics"]:
        lab.cluster("us").admin.create_topic(topic, 1)
    lab.cluster("eu").admin.create_topic("eu-moved", 1)
    for topic in ("orders", "moved", "either", "unselected"):
        send(lab, topic, 10)
    with watch(lab, [US_EU], flow=SETTINGS) as seen:
        seen.until_ready()
        names = ("orders", "moved", "either")
        copied = seen.until(lambda s: [lag(s, each) for each in names] == [0, 0, 0], "copies")
        assert copies(copied) == {
            "heartbeats": "us.heartbeats",
            "orders": "us.orders",
            "moved": "eu-moved",
            "lost": "eu-lost",
            "unselected": "us.unselected",
        }
        assert copied.value("mm2_target_end_offset", flow=FLOW, topic="moved") == 10
        assert (quality(copied, "moved"), quality(copied, "either")) == ("live", "renamed_copy")
        assert copied.value("mm2_topic_missing", flow=FLOW, topic="either") is None
        assert copied.value("mm2_topic_missing", flow=FLOW, topic="unselected") == 1
        assert lag(copied, "unselected") is None
        seen.until(lambda s: s.state(FLOW) == "idle", "canaries")
        before = len(seen.scrapes)
        send(lab, "orders", 2, dropped=True)
        seen.until(lambda s: quality(s, "orders") == "filtered", "dropped records")
        idle = seen.until(lambda s: s.state(FLOW) == "idle", "an idle flow")
        assert (lag(idle, "orders"), quality(idle, "orders")) == (0, "filtered")
        # Not by states: MirrorMaker 2 may still restart its tasks for new topics.
        assert not any(
            sum(each.values("mm2_stalled_partitions", flow=FLOW).values())
            for each in seen.scrapes[before:]
        )
        # The producer waits for eu-lost, which does not exist: the task hangs and reports RUNNING.
        send(lab, "lost", 2)
        hung = seen.until(
            lambda s: s.value("mm2_stalled_partitions", flow=FLOW, topic="lost") == 1, "a stall"
        )
        assert (lag(hung, "lost"), quality(hung, "lost")) == (2, "not_started")
        assert sum(hung.values("mm2_task_state", flow=FLOW, state="failed").values()) == 0
