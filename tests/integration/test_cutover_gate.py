"""The gate of a cutover on real clusters: injected causes, and switches of real consumers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import flow_checks
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from exporter_watch import FAST
from topic_reader import count_copies, read_topic
from transactional_traffic import OpenTransaction, consume_and_commit

from mm2slo_cli.cutover import observed
from mm2slo_core.config.config_loader import load_config
from mm2slo_core.cutover.cutover_checks import CheckOutcome, CutoverPhase, GateQuestion
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence, CutoverTerms
from mm2slo_core.cutover.cutover_gate import CutoverDecision, GateVerdict, decide, parse_waiver
from mm2slo_core.topology import Flow
from mm2slo_lab.kafka_runtime import Progress
from mm2slo_lab.lab_data import Load, commit, produce
from mm2slo_lab.lab_topology import LabEngine, LabSecurity, LabTopology
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long]

US_EU: Final = Flow("us", "eu")
ORDERS, GROUP = "orders", "shop"
PRICES: Final = "prices"
"""Compacted on the source alone: the copy keeps all records."""
IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
SETTINGS = {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "sync.topic.acls.enabled": "true",
    "sync.topic.acls.interval.seconds": "1",
    # Rare, so that a new topic or partition has no copy while the gate looks.
    "refresh.topics.interval.seconds": "600",
}
COMPACT: Final = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "1",
    "segment.ms": "50",
}
FREEZE: Final = 10.0
AUDIT: Final = parse_waiver("audit=judged by a reader of its own")
PATIENCE: Final = 300.0


@dataclass
class Gate:
    """A lab with records that a group has read, and its gate."""

    lab: Lab
    evidence: Callable[[], CutoverEvidence | None]

    @property
    def copy(self) -> str:
        return self.lab.topology.remote_topic(US_EU, ORDERS)

    def ask(self, freeze: float = FREEZE) -> CutoverDecision | None:
        seen = self.evidence()
        if seen is None:
            return None
        return decide(GateQuestion(CutoverPhase.GO, seen, CutoverTerms(freeze, waivers=(AUDIT,))))

    def until(
        self, condition: Callable[[CutoverDecision], object], what: str, freeze: float = FREEZE
    ) -> CutoverDecision:
        """Ask until *condition* holds; fails with the checks that do not pass."""
        deadline, pause = time.monotonic() + PATIENCE, threading.Event()
        while True:
            decision = self.ask(freeze)
            if decision is not None and condition(decision):
                return decision
            if time.monotonic() > deadline:
                raise AssertionError(f"waited for {what}; {standing(decision)}")
            pause.wait(0.5)

    def until_go(self) -> CutoverDecision:
        return self.until(lambda each: each.verdict is GateVerdict.GO, "go")

    def until_caused_by(self, name: str, freeze: float = FREEZE) -> CutoverDecision:
        """Until *name* fails, and all others that fail follow from it."""

        def is_first(decision: CutoverDecision) -> bool:
            failing = [each for each in decision.checks if each.result is CheckOutcome.FAIL]
            return [each.name for each in failing if not each.consequence_of] == [name]

        return self.until(is_first, f"{name} to fail first", freeze)

    def produce(self, count: int) -> None:
        copied = count_copies(self.lab, ORDERS)
        produce(self.lab.cluster("us").librdkafka(), ORDERS, Load(count, first=copied))
        wait_for(partial(_has_copies, self.lab, ORDERS, copied + count), "copies")

    def consume(self, count: int) -> None:
        consume_and_commit(self.lab.cluster("us").librdkafka(), ORDERS, GROUP, count)


def _has_copies(lab: Lab, topic: str, count: int) -> bool:
    return count_copies(lab, topic) == count


def standing(decision: CutoverDecision | None) -> str:
    if decision is None:
        return "no evidence"
    return "; ".join(
        f"{each.name} {each.result}: {each.text} {each.cases}"
        for each in decision.checks
        if each.result in (CheckOutcome.FAIL, CheckOutcome.UNKNOWN)
    )


@pytest.fixture(scope="module", params=[{}, IDENTITY], ids=["default", "identity"])
def gate(request: pytest.FixtureRequest, lab_progress: Progress) -> Iterator[Gate]:
    topology = LabTopology(
        flows=(US_EU,),
        engine=LabEngine.CONNECT,
        mm2_properties={**SETTINGS, **request.param},
        security=LabSecurity.SASL_PLAINTEXT,
    )
    with flow_checks.start_lab(topology, lab_progress, {(US_EU, ORDERS): (2, 0)}) as lab:
        lab.cluster("us").admin.create_topic(PRICES, 1, COMPACT)
        lab.restart_mirroring(US_EU)  # refreshed rarely: the topics are found at the start
        config = load_config(lab.config_yaml(exporter={**FAST, "read_only": True}))
        with observed(config, US_EU) as evidence:
            made = Gate(lab, evidence)
            made.produce(100)
            made.consume(100)
            yield made


@contextmanager
def trickle(gate: Gate) -> Iterator[None]:
    """A producer that sends a record every 20 seconds."""
    stop, sent = threading.Event(), [0]

    def run() -> None:
        while not stop.wait(0 if not sent[0] else 20):
            produce(gate.lab.cluster("us").librdkafka(), ORDERS, Load(1, first=100_000))
            sent[0] += 1

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        gate.consume(sent[0])


@contextmanager
def open_transaction(gate: Gate) -> Iterator[None]:
    properties = gate.lab.cluster("us").librdkafka()
    with OpenTransaction(properties, ORDERS, transactional_id="hanging") as transaction:
        transaction.send(Load(1, first=200_000))
        yield
        transaction.commit()
    gate.consume(1)


@contextmanager
def new_topic(gate: Gate) -> Iterator[None]:
    admin = gate.lab.cluster("us").admin
    admin.create_topic("payments", 1)
    try:
        yield
    finally:
        admin.delete_topic("payments")


@contextmanager
def copied_deny(gate: Gate) -> Iterator[None]:
    """Producers are fenced by an ACL on the source, which MirrorMaker 2 copies."""

    def fields(topic: str) -> tuple[Any, ...]:
        pattern, operation = ResourcePatternType.LITERAL, AclOperation.WRITE
        deny = AclPermissionType.DENY
        return ResourceType.TOPIC, topic, pattern, "User:web", "*", operation, deny

    us, eu = (AdminClient({**gate.lab.cluster(each).librdkafka()}) for each in ("us", "eu"))
    for answer in us.create_acls([AclBinding(*fields(ORDERS))]).values():
        answer.result(30)
    there = AclBindingFilter(*fields(gate.copy))
    wait_for(lambda: eu.describe_acls(there).result(30), "the copied DENY")
    try:
        yield
    finally:
        for admin, topic in ((us, ORDERS), (eu, gate.copy)):
            for removed in admin.delete_acls([AclBindingFilter(*fields(topic))]).values():
                removed.result(30)


@contextmanager
def stray_commit(gate: Gate) -> Iterator[None]:
    """A commit on the target beyond its end, which MirrorMaker 2 never moves back."""
    eu = gate.lab.cluster("eu")
    admin = AdminClient({**eu.librdkafka()})
    ends = eu.admin.end_offsets(gate.copy)
    commit(eu.librdkafka(), gate.copy, GROUP, {number: end + 50 for number, end in ends.items()})
    try:
        yield
    finally:
        admin.delete_consumer_groups([GROUP])[GROUP].result(30)


@contextmanager
def dead_flow(gate: Gate) -> Iterator[None]:
    worker = gate.lab.connect("eu")
    worker.process.kill()
    try:
        yield
    finally:
        worker.start()
        worker.wait_mirroring()


@contextmanager
def paused_checkpoints(gate: Gate) -> Iterator[None]:
    worker = gate.lab.connect("eu")
    path = "/connectors/us-%3Eeu.MirrorCheckpointConnector"
    worker.rest("PUT", f"{path}/pause")
    gate.produce(10)
    gate.consume(10)
    try:
        yield
    finally:
        worker.rest("PUT", f"{path}/resume")


@contextmanager
def fewer_partitions(gate: Gate) -> Iterator[None]:
    us = gate.lab.cluster("us").admin
    us.create_topic("small", 1)
    gate.lab.cluster("eu").admin.create_topic(gate.copy.replace(ORDERS, "small"), 1)
    us.add_partitions("small", 3)
    try:
        yield
    finally:
        us.delete_topic("small")


@contextmanager
def end_of_a_gap(gate: Gate) -> Iterator[None]:
    """A group whose next record is beyond 100 offsets that were compacted away."""
    us = gate.lab.cluster("us")
    for first in range(0, 300, 100):
        load = Load(100, partition=0, first=first, keys=("a", "b", "c"))
        produce(us.librdkafka(), PRICES, load)
        wait_for(partial(_has_copies, gate.lab, PRICES, first + 100), "copies")

    def is_compacted() -> bool:
        offsets = {message.offset() for message in read_topic(us.librdkafka(), PRICES)}
        return not offsets & set(range(100, 150))

    wait_for(is_compacted, "a compacted source", PATIENCE)
    commit(us.librdkafka(), PRICES, "pricing", {0: 150})
    try:
        yield
    finally:
        commit(us.librdkafka(), PRICES, "pricing", us.admin.end_offsets(PRICES))


CAUSES: dict[str, tuple[Callable[[Gate], AbstractContextManager[None]], float]] = {
    "producers": (trickle, 30.0),
    "transactions": (open_transaction, FREEZE),
    "topics": (new_topic, FREEZE),
    "access": (copied_deny, FREEZE),
    "target_groups": (stray_commit, FREEZE),
    "flow": (dead_flow, FREEZE),
    "connectors": (paused_checkpoints, FREEZE),
    "partitions": (fewer_partitions, FREEZE),
    "source_groups": (end_of_a_gap, FREEZE),
}


@pytest.mark.parametrize("check", CAUSES)
def test_injected_cause_fails_its_own_check_first(gate: Gate, check: str) -> None:
    gate.until_go()
    inject, freeze = CAUSES[check]
    with inject(gate):
        gate.until_caused_by(check, freeze)
    gate.until_go()


@pytest.mark.parametrize("freeze", [10.0, 11.0, 12.0, 13.0, CutoverTerms().freeze])
def test_consumers_switch_after_go_without_loss_and_as_predicted(gate: Gate, freeze: float) -> None:
    """The group resumes on the target from its commits there; all was read on the source."""
    gate.produce(137)
    gate.consume(137)
    # An earlier round knows nothing of these records: the answer is as of its time.
    written_at = time.time()
    gate.until(lambda d: d.as_of > written_at * 1000 and d.verdict is GateVerdict.GO, "go", freeze)
    seen = gate.evidence()
    assert seen is not None
    (shop,) = (each for each in seen.groups if each.group == GROUP)
    us, eu = (gate.lab.cluster(each).librdkafka() for each in ("us", "eu"))
    assert sorted(map(_content, read_topic(us, ORDERS))) == sorted(
        map(_content, read_topic(eu, gate.copy))
    )
    reread = count_from_commits(gate, partial(Consumer, {**eu, "group.id": GROUP}))
    assert shop.redelivery_most == 0
    assert reread == 0


def _content(message: object) -> tuple[bytes | None, bytes | None]:
    return message.key(), message.value()  # type: ignore[attr-defined]


def count_from_commits(gate: Gate, open_consumer: Callable[[], Consumer]) -> int:
    """Records of the copy from the group's commits on; all were read on the source."""
    found = gate.lab.cluster("eu").admin.group_offsets(GROUP)
    ends = gate.lab.cluster("eu").admin.end_offsets(gate.copy)
    own = {number: offset for (topic, number), offset in found.items() if topic == gate.copy}
    assert own.keys() == ends.keys()
    consumer = open_consumer()
    try:
        consumer.assign([TopicPartition(gate.copy, number) for number in own])
        left, count = sum(ends[number] - offset for number, offset in own.items()), 0
        while left and (message := consumer.poll(30)) is not None and message.error() is None:
            count, left = count + 1, left - 1
        return count
    finally:
        consumer.close()
