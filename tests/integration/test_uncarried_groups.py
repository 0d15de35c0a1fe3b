"""Streams and share groups, which MirrorMaker 2 does not carry, beside groups that it does.

Each verdict is compared with a failover that real clients do: the same groups on the target.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import flow_checks
import pytest
from exporter_watch import Scrape, Watch, watch
from kafka_jvm import running_jvm, streams_jar
from topic_reader import count_copies
from transactional_traffic import continue_group

from mm2slo_core.cutover.cutover_checks import CheckOutcome, CutoverPhase, GateQuestion
from mm2slo_core.cutover.cutover_evidence import CutoverTerms
from mm2slo_core.cutover.cutover_gate import decide
from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress, classpath
from mm2slo_lab.lab_data import Load, produce
from mm2slo_lab.lab_topology import DEFAULT_VERSION, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU = Flow("us", "eu")
TOPIC, OUT, COMMITTED = "orders", "out", 40
ORDERS = {"us": TOPIC, "eu": f"us.{TOPIC}"}
SYNC = {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "refresh.groups.interval.seconds": "1",
}
BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
SERDE = "org.apache.kafka.common.serialization.Serdes$ByteArraySerde"


@pytest.fixture(scope="module")
def lab(lab_progress: Progress) -> Iterator[Lab]:
    topology = LabTopology(flows=(US_EU,), mm2_properties=SYNC)
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, TOPIC): (1, 0)}) as own:
        for cluster in ("us", "eu"):
            own.cluster(cluster).admin.create_topic(OUT, 1)
        produce_copied(own, 100)
        yield own


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    jars = os.pathsep.join([str(streams_jar(DEFAULT_VERSION)), classpath(DEFAULT_VERSION)])
    with running_jvm(jars) as found:
        yield found


@pytest.fixture
def seen(lab: Lab) -> Iterator[Watch]:
    with watch(lab, [US_EU]) as watching:
        watching.until_ready()
        yield watching


def produce_copied(lab: Lab, count: int) -> None:
    copied = count_copies(lab, TOPIC)
    produce(lab.cluster("us").librdkafka(), TOPIC, Load(count))
    wait_for(lambda: count_copies(lab, TOPIC) == copied + count, "copies")


def properties(jvm: Any, lab: Lab, cluster: str, **settings: str) -> Any:
    made = jvm.java.util.Properties()
    settings["bootstrap_servers"] = lab.cluster(cluster).bootstrap_servers
    for name, value in settings.items():
        made.setProperty(name.replace("_", "."), value)
    return made


@contextmanager
def streams(
    jvm: Any, lab: Lab, cluster: str, app: str, protocol: str = "streams", *, state: Path
) -> Iterator[None]:
    """A Streams application that forwards the orders, from the earliest on."""
    builder = jvm.org.apache.kafka.streams.StreamsBuilder()
    builder.stream(ORDERS[cluster]).to(OUT)
    settings = properties(
        jvm,
        lab,
        cluster,
        application_id=app,
        group_protocol=protocol,
        commit_interval_ms="100",
        auto_offset_reset="earliest",
        state_dir=str(state),
        default_key_serde=SERDE,
        default_value_serde=SERDE,
        **(
            {"session_timeout_ms": "2000", "heartbeat_interval_ms": "500"}
            if protocol == "classic"
            else {}
        ),
    )
    running = jvm.org.apache.kafka.streams.KafkaStreams(builder.build(), settings)
    running.start()
    try:
        yield
    finally:
        running.close()


@contextmanager
def share_consumer(jvm: Any, lab: Lab, cluster: str) -> Iterator[Any]:
    """A member of the share group billing."""
    consumer = jvm.org.apache.kafka.clients.consumer.KafkaShareConsumer(
        properties(
            jvm, lab, cluster, group_id="billing", key_deserializer=BYTES, value_deserializer=BYTES
        )
    )
    topics = jvm.java.util.ArrayList()
    topics.add(ORDERS[cluster])
    consumer.subscribe(topics)
    try:
        yield consumer
    finally:
        consumer.close()


def read_shared(jvm: Any, consumer: Any) -> list[int]:
    """Offsets of what one poll returns, acknowledged."""
    records = consumer.poll(jvm.java.time.Duration.ofMillis(200)).iterator()
    offsets = []
    while records.hasNext():
        offsets.append(records.next().offset())
    consumer.commitSync()
    return offsets


def receive_first(lab: Lab, jvm: Any, consumer: Any) -> int:
    """The offset of the first record that the share group gets, while records are produced."""
    found: list[int] = []

    def is_received() -> bool:
        produce_copied(lab, 1)
        found.extend(read_shared(jvm, consumer))
        return bool(found)

    wait_for(is_received, "a record of the share group", poll=0)
    return found[0]


def consume(lab: Lab, cluster: str, group: str, count: int) -> list[int]:
    """Offsets of the next *count* records of the group, which it commits."""
    properties = lab.cluster(cluster).librdkafka()
    return continue_group(properties, ORDERS[cluster], group, lambda offsets: len(offsets) >= count)


def end(lab: Lab) -> int:
    return sum(lab.cluster("us").admin.end_offsets(TOPIC).values())


def processed(lab: Lab, cluster: str) -> int:
    return sum(lab.cluster(cluster).admin.end_offsets(OUT).values())


def reasons(scrape: Scrape, group: str) -> set[str]:
    return scrape.active("reason", "mm2_failover_blocked", group=group)


def left_behind(seen: Watch) -> set[str]:
    """The groups that the gate of a cutover wants to be accepted by name."""
    evidence = seen.exporter.cutover_evidence(US_EU.slug)
    if evidence is None:
        return set()
    decision = decide(GateQuestion(CutoverPhase.GO, evidence, CutoverTerms()))
    return {
        group
        for each in decision.checks
        if each.name == "uncarried_groups" and each.result is CheckOutcome.FAIL
        for group in each.items
    }


def test_verdicts_are_what_clients_of_each_type_do_on_the_target(
    lab: Lab, jvm: Any, seen: Watch, tmp_path: Path
) -> None:
    for group in ("classic", "consumer"):
        consume(lab, "us", group, COMMITTED)
    with (
        streams(jvm, lab, "us", "enrich", state=tmp_path / "us"),
        share_consumer(jvm, lab, "us") as billing,
    ):
        # Its reset policy is latest.
        receive_first(lab, jvm, billing)
        total = end(lab)
        wait_for(lambda: processed(lab, "us") == total, "records of the Streams application")
        seen.until(
            lambda s: (
                [reasons(s, group) for group in ("enrich", "billing")]
                == [{"not_replicated_streams"}, {"not_replicated_share"}]
                and [s.value("mm2_failover_ready", group=g) for g in ("classic", "consumer")]
                == [1, 1]
            ),
            "a verdict on each group",
        )
        seen.until(lambda _: {"enrich", "billing"} <= left_behind(seen), "both at the gate")
        scrape = seen.scrape()
        assert scrape.value("mm2_failover_group_types_known") == 1
        assert scrape.value("mm2_group_lag_records", group="enrich", cluster="us") == 0
    produce_copied(lab, 20)  # that the groups had not read
    total = end(lab)

    # The classic and the KIP-848 group read again what the exporter says, and skip nothing.
    for group in ("classic", "consumer"):
        least, most = (
            scrape.value("mm2_failover_redelivery_records", group=group, bound=bound)
            for bound in ("lower", "upper")
        )
        [first] = consume(lab, "eu", group, 1)
        assert (least or 0) <= COMMITTED - first <= (most or 0)
    # The Streams application starts again: its reset policy is earliest.
    with streams(jvm, lab, "eu", "enrich", state=tmp_path / "eu"):
        wait_for(lambda: processed(lab, "eu") == total, "all records again")
    # The share group starts at the end: it never gets the records in between.
    with share_consumer(jvm, lab, "eu") as billing:
        assert receive_first(lab, jvm, billing) >= total


def test_group_that_changes_to_the_streams_protocol_is_blocked_within_one_listing(
    lab: Lab, jvm: Any, seen: Watch, tmp_path: Path
) -> None:
    before = processed(lab, "us") + end(lab)
    with streams(jvm, lab, "us", "moving", "classic", state=tmp_path / "classic"):
        wait_for(lambda: processed(lab, "us") == before, "records of the application")
        seen.until(lambda s: s.value("mm2_failover_ready", group="moving") == 1, "readiness")
    # Its members do not leave the group: until their session ends, it cannot change.
    state = {"group": "moving", "cluster": "us", "state": "empty"}
    seen.until(lambda s: s.value("mm2_group_state", **state) == 1, "an empty group")
    with streams(jvm, lab, "us", "moving", state=tmp_path / "streams"):
        produce_copied(lab, 5)
        wait_for(lambda: processed(lab, "us") == before + 5, "further records")
        seen.until(lambda s: reasons(s, "moving") == {"not_replicated_streams"}, "the reason")
