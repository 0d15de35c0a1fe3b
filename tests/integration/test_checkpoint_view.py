"""The exporter decodes MirrorMaker 2's internal topics as Kafka's own client does."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from exporter_watch import Watch, watch
from kafka_jvm import running_jvm
from topic_reader import count_copies, read_topic

from mm2slo_core.records.connect_records import (
    ConnectorConfig,
    ConnectorStatus,
    SourceOffset,
    TaskAssignment,
    decode_config,
    decode_status,
)
from mm2slo_core.records.mirror_records import Checkpoint, Heartbeat, OffsetSync, Tombstone
from mm2slo_core.topology import TopicPartition
from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("failover-lab")]

TOPIC = "checkpoint-view"
COMMITS = {
    "view-head": {0: 3000, 1: 500},
    "view-behind": {0: 1234, 1: 77},
    "view-one-partition": {1: 499},
    "view-at-start": {0: 1, 1: 1},
}
View = dict[TopicPartition, int]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Any]:
    """A JVM with Kafka's classes."""
    with running_jvm() as view:
        yield view


@pytest.fixture(scope="module")
def groups(lab: Lab) -> Lab:
    """A lab with groups at several offsets, each with checkpoints."""
    us = lab.cluster("us")
    us.admin.create_topic(TOPIC, 2)
    produce(us.librdkafka(), TOPIC, Load(3000, partition=0))
    produce(us.librdkafka(), TOPIC, Load(500, partition=1))
    wait_for(lambda: count_copies(lab, TOPIC) == 3500, "the copies")
    for group, offsets in COMMITS.items():
        commit(us.librdkafka(), TOPIC, group, offsets)
    return lab


def translated_offsets(kafka: Any, lab: Lab, group: str) -> View:
    """Offsets that Kafka's client translates for a failover."""
    properties = kafka.java.util.HashMap()
    for name, value in lab.cluster("eu").java().items():
        properties[name] = value
    found = kafka.org.apache.kafka.connect.mirror.RemoteClusterUtils.translateOffsets(
        properties, "us", group, kafka.java.time.Duration.ofSeconds(30)
    )
    return {TopicPartition(key.topic(), key.partition()): found[key].offset() for key in found}


def exporter_offsets(seen: Watch, group: str) -> View:
    """Downstream offsets of the group's checkpoints in the exporter."""
    (runner,) = seen.exporter._flows.running()
    held = runner.internals().checkpoints.get(group, {})
    return {partition: mark.downstream for partition, mark in held.items()}


def compare_offsets(kafka: Any, seen: Watch, lab: Lab) -> dict[str, View]:
    """Wait until the checkpoints of all groups are those that Kafka's client reads."""
    found: dict[str, View] = {}

    def are_equal() -> bool:
        found.update({group: exporter_offsets(seen, group) for group in COMMITS})
        complete = all(
            {key.partition for key in found[group]} == set(offsets)
            for group, offsets in COMMITS.items()
        )
        return complete and found == {
            group: translated_offsets(kafka, lab, group) for group in COMMITS
        }

    wait_for(are_equal, "the checkpoints that Kafka's client reads")
    return found


def test_checkpoints_equal_those_of_kafka_client(kafka: Any, groups: Lab) -> None:
    with watch(groups, ["us->eu"]) as seen:
        seen.until_ready()
        # MirrorMaker 2 may write the last sync, and the checkpoint by it, after the first ones.
        head = {TopicPartition(f"us.{TOPIC}", 0): 3000, TopicPartition(f"us.{TOPIC}", 1): 500}
        wait_for(lambda: exporter_offsets(seen, "view-head") == head, "the head's checkpoint")
        before = compare_offsets(kafka, seen, groups)
        assert before["view-head"] == head
        groups.mm2.restart()
        # The group advances, so that checkpoints of the new task are compared, too.
        us = groups.cluster("us")
        produce(us.librdkafka(), TOPIC, Load(1000, partition=0, first=3000))
        wait_for(lambda: count_copies(groups, TOPIC) == 4500, "the copies")
        commit(us.librdkafka(), TOPIC, "view-head", {0: 4000, 1: 500})
        moved = TopicPartition(f"us.{TOPIC}", 0)
        wait_for(
            lambda: exporter_offsets(seen, "view-head")[moved] == 4000,
            "the group's new checkpoint",
        )
        after = compare_offsets(kafka, seen, groups)
        assert {group: after[group] for group in after if group != "view-head"} == {
            group: before[group] for group in before if group != "view-head"
        }


def encodes_unchanged(decode: Callable[[bytes | None, bytes | None], Any]) -> Callable[..., bool]:
    """A check that a decoded record encodes to the same bytes."""

    def check(key: bytes | None, value: bytes | None) -> bool:
        found = decode(key, value)
        if isinstance(found, Tombstone):
            return value is None
        return (found.encode_key(), found.encode_value()) == (key, value)

    return check


def decodes_to(
    decode: Callable[[bytes | None, bytes | None], Any], *kinds: type
) -> Callable[..., bool]:
    """A check that a record is one of *kinds*, or is ignored by the decoder."""

    def check(key: bytes | None, value: bytes | None) -> bool:
        found = decode(key, value)
        return found is None or isinstance(found, (*kinds, Tombstone))

    return check


@pytest.mark.parametrize(
    ("cluster", "topic", "check"),
    [
        ("us", "mm2-offset-syncs.eu.internal", encodes_unchanged(OffsetSync.decode)),
        ("eu", "mm2-offset-syncs.us.internal", encodes_unchanged(OffsetSync.decode)),
        ("eu", "us.checkpoints.internal", encodes_unchanged(Checkpoint.decode)),
        ("us", "heartbeats", encodes_unchanged(Heartbeat.decode)),
        ("eu", "us.heartbeats", encodes_unchanged(Heartbeat.decode)),
        ("eu", "mm2-offsets.us.internal", decodes_to(SourceOffset.decode, SourceOffset)),
        (
            "eu",
            "mm2-status.us.internal",
            decodes_to(decode_status, ConnectorStatus),
        ),
        (
            "eu",
            "mm2-configs.us.internal",
            decodes_to(decode_config, ConnectorConfig, TaskAssignment),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_all_internal_records_decode(
    groups: Lab, cluster: str, topic: str, check: Callable[..., bool]
) -> None:
    records = read_topic(groups.cluster(cluster).librdkafka(), topic)
    checked = Counter(check(record.key(), record.value()) for record in records)
    assert checked == {True: len(records)}
    assert records


def test_ignored_record_kinds_are_closed_list(groups: Lab) -> None:
    """Prefixes of keys of ignored records."""
    closed = ("status-topic-", "commit-", "session-key", "target-state-")
    eu = groups.cluster("eu").librdkafka()
    skipped = [
        (record.key() or b"").decode()
        for topic, decode in (
            ("mm2-status.us.internal", decode_status),
            ("mm2-configs.us.internal", decode_config),
        )
        for record in read_topic(eu, topic)
        if decode(record.key(), record.value()) is None
    ]
    assert [key for key in skipped if not key.startswith(closed)] == []


def test_exporter_counts_no_malformed_records(groups: Lab) -> None:
    with watch(groups) as seen:
        ready = seen.until_ready()
        assert set(ready.values("mm2_exporter_malformed_records_total").values()) == {0}
