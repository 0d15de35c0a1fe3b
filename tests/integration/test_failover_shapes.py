"""Verdicts on groups of many shapes, compared with consumers that really resume on the target."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

import flow_checks
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from exporter_watch import Scrape, Watch, watch
from target_resume import checkpoints
from topic_reader import count_copies, read_topic
from transactional_traffic import group_member

from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.lab_topology import LabSecurity, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
ORDERS, COMPACTED = "orders", "compacted"
RECORDS: Final = 2_000
"""Of each of the two partitions of orders; record n has the offset n."""
SYNC = {"sync.group.offsets.enabled": "true", "sync.group.offsets.interval.seconds": "1"}
IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


class Shape(NamedTuple):
    """A group: its commits on the source, later ones, and the reasons without and with sync."""

    first: Mapping[int, int]
    then: Mapping[int, int] | None = None
    unsynced: str | None = None
    synced: str | None = None
    while_stopped: Mapping[int, int] | None = None
    """Commits while MirrorMaker 2 is stopped."""
    topic: str = ORDERS


def _both(offset: int) -> dict[int, int]:
    return {0: offset, 1: offset}


SHAPES: Final = {
    "at-end": Shape(_both(RECORDS)),
    "behind": Shape(_both(1_040)),
    "idle-at-start": Shape(_both(1)),
    "reset-to-earliest": Shape(_both(1_000), _both(0), synced="would_skip_records"),
    "reset-by-date": Shape(_both(1_900), _both(700), synced="would_skip_records"),
    "reset-by-shift": Shape(_both(1_990), _both(1_000), synced="would_skip_records"),
    "reset-to-end": Shape(_both(100), _both(RECORDS)),
    "partly-reset": Shape(_both(1_800), {0: 1_800, 1: 300}, synced="would_skip_records"),
    "one-partition": Shape({1: 1_700}),
    "beyond-end": Shape(
        {0: RECORDS + 500},
        unsynced="source_commit_beyond_end",
        synced="source_commit_beyond_end",
    ),
    "compacted-gap": Shape({0: 250}, topic=COMPACTED),
    "consumer-kip848": Shape(_both(1_333)),
    "ahead-of-sync": Shape(_both(600), while_stopped=_both(1_100)),
    "new-while-stopped": Shape(
        {}, while_stopped=_both(900), unsynced="no_checkpoint", synced="no_checkpoint"
    ),
    "not-synced": Shape(_both(1_600), synced="not_synced_yet"),
    "active": Shape(_both(1_450), unsynced="target_group_active", synced="target_group_active"),
    "deleted": Shape(_both(1_234)),
}
"""Skips are certain here: the exporter has seen all offset syncs."""


class Outcome(NamedTuple):
    """What a consumer on the target did."""

    is_reset: bool
    """It had no offset, or one outside the log: its reset policy would have decided."""
    reread: int = 0
    skipped: int = 0


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((policy, sync), id=f"{name}-{'synced' if sync else 'unsynced'}")
        for name, policy in (("default", {}), ("identity", IDENTITY))
        for sync in (SYNC, {})
    ],
)
def lab(request: pytest.FixtureRequest, lab_progress: Progress) -> Iterator[Lab]:
    policy, sync = request.param
    # Only brokers that Kafka's tool has formatted enable groups of KIP-848.
    topology = LabTopology(
        flows=(US_EU,),
        mm2_properties={**policy, **sync, "offset.lag.max": "0"},
        security=LabSecurity.SASL_SSL,
    )
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, ORDERS): (2, 0)}) as own:
        yield own


def _copy(lab: Lab, topic: str) -> str:
    return lab.topology.remote_topic(US_EU, topic)


def _produce(lab: Lab) -> None:
    us = lab.cluster("us")
    for first in range(0, RECORDS, 250):
        for number in (0, 1):
            load = Load(250, partition=number, first=first)
            produce(us.librdkafka(), ORDERS, load)
        wait_for(
            partial(lambda wanted: count_copies(lab, ORDERS) == wanted, 2 * (first + 250)), "copies"
        )
    us.admin.create_topic(
        COMPACTED,
        1,
        {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.01",
            "max.compaction.lag.ms": "1",
            "segment.ms": "50",
        },
    )
    for first in range(0, 300, 100):
        load = Load(100, partition=0, first=first, keys=("a", "b", "c"))
        produce(us.librdkafka(), COMPACTED, load)
        wait_for(
            partial(lambda wanted: count_copies(lab, COMPACTED) == wanted, first + 100), "copies"
        )
    wait_for(lambda: len(read_topic(us.librdkafka(), COMPACTED)) < 200, "a compacted source", 120)


def _move(lab: Lab, group: str, topic: str, offsets: Mapping[int, int]) -> None:
    properties = lab.cluster("us").librdkafka()
    if group == "consumer-kip848":
        with group_member(properties, topic, group, offsets, protocol="consumer"):
            pass
    else:
        commit(properties, topic, group, offsets)


def _target_commits(lab: Lab, group: str, topic: str) -> dict[int, int]:
    found = lab.cluster("eu").admin.group_offsets(group)
    copy = _copy(lab, topic)
    return {number: offset for (name, number), offset in found.items() if name == copy}


def _await_mirrormaker(lab: Lab, *, synced: bool, then: bool) -> None:
    """Wait until MirrorMaker 2 has translated each group's newest commits, and synced them."""
    for group, shape in SHAPES.items():
        offsets = (shape.then if then else shape.first) or {}
        for number, offset in offsets.items():

            def is_translated(
                group: str = group, shape: Shape = shape, number: int = number, offset: int = offset
            ) -> bool:
                mark = checkpoints(lab, shape.topic, group).get(number)
                if mark is None or mark.upstream_offset != offset:
                    return False
                there = _target_commits(lab, group, shape.topic).get(number, -1)
                return not synced or there >= mark.downstream_offset

            wait_for(is_translated, f"the checkpoint of {group}")


@pytest.fixture(scope="module")
def seen(lab: Lab) -> Iterator[Watch]:
    """All groups in their final state, MirrorMaker 2 stopped, as the exporter sees them."""
    synced = "sync.group.offsets.enabled" in lab.topology.mm2_properties
    budget = {"max_redelivery_records": 10_000, "max_checkpoint_lag_records": 10_000}
    timing = {"groups_interval": "1s", "group_members_interval": "1s"}
    with watch(lab, [US_EU], flow={"readiness": budget}, exporter=timing) as watching:
        watching.until_ready()
        _produce(lab)
        for group, shape in SHAPES.items():
            if shape.first:
                _move(lab, group, shape.topic, shape.first)
        _await_mirrormaker(lab, synced=synced, then=False)
        for group, shape in SHAPES.items():
            if shape.then:
                _move(lab, group, shape.topic, shape.then)
        _await_mirrormaker(lab, synced=synced, then=True)
        lab.mm2.stop()
        eu, us = (AdminClient({**lab.cluster(name).librdkafka()}) for name in ("eu", "us"))
        if synced:
            eu.delete_consumer_groups(["not-synced"])["not-synced"].result(30)
        us.delete_consumer_groups(["deleted"])["deleted"].result(30)
        for group, shape in SHAPES.items():
            if shape.while_stopped:
                _move(lab, group, shape.topic, shape.while_stopped)
        ahead = {0: 1_900, 1: 1_900}
        with group_member(lab.cluster("eu").librdkafka(), _copy(lab, ORDERS), "active", ahead):
            watching.until(
                lambda s: (
                    blocked(s, "active") == {"target_group_active"}
                    and (blocked(s, "not-synced") == {"not_synced_yet"}) == synced
                    and blocked(s, "new-while-stopped")
                    and s.value("mm2_failover_ready", group="deleted") is None
                ),
                "the last changes",
            )
            watching.after_cycles(5)
            yield watching


def blocked(scrape: Scrape, group: str) -> set[str]:
    return scrape.active("reason", "mm2_failover_blocked", group=group)


def _bounds(scrape: Scrape, name: str, group: str) -> tuple[float | None, float | None]:
    lower, upper = (scrape.value(name, group=group, bound=each) for each in ("lower", "upper"))
    return lower, upper


def _newest_commits(shape: Shape) -> Mapping[int, int]:
    return shape.while_stopped or shape.then or shape.first


def fail_over(lab: Lab, group: str, shape: Shape, *, synced: bool) -> Outcome:
    """Resume as *group* on the target, from its commits there, and count what it reads.

    Where MirrorMaker 2 does not sync and the group has no commits there, they are set to its
    checkpoints first, as applications do with `RemoteClusterUtils`.
    """
    eu, copy = lab.cluster("eu").librdkafka(), _copy(lab, shape.topic)
    commits = _newest_commits(shape)
    if not synced and not _target_commits(lab, group, shape.topic):
        marks = checkpoints(lab, shape.topic, group)
        offsets = {n: mark.downstream_offset for n, mark in marks.items() if n in commits}
        if offsets:
            commit(eu, copy, group, offsets)
    read: dict[int, set[int]] = {number: set() for number in commits}
    reread = 0
    consumer = Consumer(
        {
            **eu,
            "log_level": 2,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        # Without positions: the committed offsets of the group.
        consumer.assign([TopicPartition(copy, number) for number in commits])
        open_partitions = set(commits)
        while open_partitions:
            message = consumer.poll(60)
            assert message is not None, f"{group} read nothing for 60 s"
            error, partition = message.error(), message.partition()
            assert partition is not None or error is not None
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                open_partitions.discard(partition or 0)
            elif error is not None and error.code() == KafkaError._AUTO_OFFSET_RESET:
                return Outcome(is_reset=True)
            elif error is not None:
                raise KafkaException(error)
            else:
                number = _number(message.value())
                read[partition or 0].add(number)
                reread += number < commits[partition or 0]
    finally:
        consumer.close()
    skipped = 0
    for message in read_topic(eu, copy):
        partition, number = message.partition() or 0, _number(message.value())
        if partition in commits and number >= commits[partition]:
            skipped += number not in read[partition]
    return Outcome(is_reset=False, reread=reread, skipped=skipped)


def _number(value: str | bytes | None) -> int:
    assert isinstance(value, bytes)
    return int(value[1:].split(b"-")[0])


@pytest.mark.parametrize("group", [name for name in SHAPES if name not in ("active", "deleted")])
def test_verdict_is_what_a_consumer_on_the_target_experiences(
    lab: Lab, seen: Watch, group: str
) -> None:
    synced = "sync.group.offsets.enabled" in lab.topology.mm2_properties
    shape, scrape = SHAPES[group], seen.scrapes[-1]
    expected = shape.synced if synced else shape.unsynced
    assert blocked(scrape, group) == ({expected} if expected else set())
    assert scrape.value("mm2_failover_ready", group=group) == (not expected)
    lower, upper = _bounds(scrape, "mm2_failover_redelivery_records", group)
    least, most = _bounds(scrape, "mm2_failover_skipped_records", group)
    if expected == "source_commit_beyond_end":
        # Where it resumes is no question of the target: its offset is reset on the source.
        assert (lower, upper, least) == (None, None, None)
        return
    outcome = fail_over(lab, group, shape, synced=synced)
    if outcome.is_reset:
        assert expected in ("no_checkpoint", "not_synced_yet")
        assert (lower, upper) == (None, None)
        return
    assert lower is not None
    assert upper is not None
    assert lower <= outcome.reread <= upper
    assert (least or 0) <= outcome.skipped <= (most or 0)
    assert (expected == "would_skip_records") == (outcome.skipped > 0)


def test_group_active_on_the_target_has_bounds_of_commit_and_checkpoint(
    lab: Lab, seen: Watch
) -> None:
    scrape = seen.scrapes[-1]
    assert blocked(scrape, "active") == {"target_group_active"}
    assert _bounds(scrape, "mm2_failover_skipped_records", "active") == (None, None)
    marks = checkpoints(lab, ORDERS, "active")
    reread = sum(1_450 - mark.downstream_offset for mark in marks.values())
    assert _bounds(scrape, "mm2_failover_redelivery_records", "active") == (0, reread)


def test_deleted_group_has_no_verdict(seen: Watch) -> None:
    assert seen.scrapes[-1].values("mm2_failover_ready", group="deleted") == {}
