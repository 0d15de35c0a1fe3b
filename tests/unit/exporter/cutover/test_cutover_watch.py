"""The evidence for a cutover, from observed rounds and what is read for it."""

from dataclasses import asdict
from typing import Any

import pytest
from flow_observations import Scene, checkpoint_connector, flow_config

from mm2slo_core.config.exporter_settings import CanaryCarrier
from mm2slo_core.cutover.cutover_evidence import CutoverEvidence
from mm2slo_core.indicators.group_readiness import NewestCheckpoint
from mm2slo_core.kafka_permissions import AclPattern, AclRule
from mm2slo_core.topic_selection import TopicRole
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.cutover.cutover_reader import CutoverReader, access_facts
from mm2slo_exporter.cutover.cutover_watch import (
    ASKED_SECONDS,
    CutoverReads,
    CutoverWatch,
    UnreadTail,
)
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_kafka.first_records import FirstRecord, FirstRecords
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import OffsetReading
from mm2slo_report.cutover_facts import EVIDENCE

ORDERS, COPY = TopicPartition("orders", 0), TopicPartition("us.orders", 0)


class Watched:
    """A watched flow us->eu with one topic, polled every five seconds."""

    def __init__(self, **settings: Any) -> None:
        self.scene = Scene(source={"groups_complete": True})
        self.log = self.scene.add("orders")
        self.log.live(100, 100)
        self.flow = flow_config(**settings)
        self.tracker = FlowTracker(
            self.flow, carrier=CanaryCarrier.OFF, shared_target=False, started_at=1000.0
        )
        self.watch = CutoverWatch()
        self.now = 1000.0

    def look(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            self.now += 5.0
            seen = self.scene.look(self.now)
            self.watch.observe(seen, self.tracker.update(seen), self.flow)

    def write(self, records: int = 1) -> None:
        assert self.log.end is not None
        self.log.live(self.log.end + records, self.log.end + records)

    def evidence(self, **reads: Any) -> CutoverEvidence:
        found = self.watch.evidence(self.now, CutoverReads(**reads))
        assert found is not None
        return found

    def start(self) -> None:
        """Start to ask."""
        self.look()
        assert self.watch.evidence(self.now, CutoverReads()) is None
        self.look()


def test_freeze_counts_from_the_first_round_without_a_new_record() -> None:
    flow = Watched()
    flow.look()
    flow.write()
    flow.look()
    flow.start()
    flow.look(3)
    seen = flow.evidence()
    assert (seen.frozen_from, seen.frozen_until) == (1009.9, 1034.8)
    assert seen.written.count == 0


def test_record_after_the_first_question_is_held_against_its_topic() -> None:
    flow = Watched()
    flow.start()
    flow.look()
    flow.write()
    flow.look()
    flow.look(2)
    seen = flow.evidence()
    assert seen.written.first == ("orders: 10 s ago",)
    assert seen.written_at == seen.frozen_from
    assert seen.frozen_from == flow.now - 10.1


def test_unanswered_end_is_unread_and_no_movement() -> None:
    flow = Watched()
    flow.start()
    before = flow.evidence().frozen_from
    flow.log.end = None
    flow.look()
    assert flow.evidence().unread_ends.first == ("orders-0",)
    flow.log.end = 100
    flow.look()
    seen = flow.evidence()
    assert (seen.unread_ends.count, seen.frozen_from) == (0, before)


def test_unreachable_source_does_not_prolong_the_freeze() -> None:
    flow = Watched()
    flow.start()
    until = flow.evidence().frozen_until
    flow.scene.source_readable = False
    flow.look(5)
    seen = flow.evidence()
    assert (seen.frozen_until, seen.unreadable) == (until, ("us",))


def test_topics_that_appear_while_watched_are_named() -> None:
    flow = Watched()
    flow.start()
    flow.scene.add("payments")
    flow.scene.missing_copies = {"payments"}
    flow.look()
    seen = flow.evidence()
    assert seen.new_topics.first == ("payments: first seen 0 s ago",)
    assert seen.newest_topic_at == flow.now - 0.1
    assert seen.missing_copies.first == ("payments: no us.payments",)
    assert seen.written.count == 0


def test_heartbeats_and_canaries_are_no_data() -> None:
    flow = Watched()
    for name, role in (("heartbeats", TopicRole.HEARTBEATS), ("probe", TopicRole.CANARY)):
        flow.scene.add(name, role=role)
    flow.start()
    frozen = flow.evidence().frozen_from
    for name in ("heartbeats", "probe"):
        flow.scene.logs[TopicPartition(name, 0)].end = 50
    flow.look()
    seen = flow.evidence()
    assert (seen.frozen_from, seen.partitions) == (frozen, 1)


def test_questions_end_after_a_quarter_of_an_hour() -> None:
    flow = Watched()
    flow.start()
    first = flow.evidence().watched_since
    flow.look(int(ASKED_SECONDS / 5) + 1)
    assert flow.watch.evidence(flow.now, CutoverReads()) is None
    flow.look()
    assert flow.evidence().watched_since > first


def with_group(flow: Watched, commit: int) -> None:
    flow.scene.source |= {
        "group_offsets": {"shop": {ORDERS: commit}},
        "groups_read_at": {"shop": flow.now + 4},
        "group_states": {"shop": "stable"},
    }
    flow.scene.internals["checkpoints"] = {"shop": {COPY: NewestCheckpoint(commit, commit, 900.0)}}
    flow.scene.target |= {"group_states": {"shop": "empty"}}


def test_group_facts_are_those_of_its_readiness_and_what_it_has_to_read() -> None:
    flow = Watched()
    with_group(flow, 95)
    flow.start()
    (shop,) = flow.evidence().groups
    assert (shop.group, shop.carried, shop.members_on_source) == ("shop", True, True)
    assert (shop.members_on_target, shop.checkpoint_lag) == (False, 0)
    assert (shop.remaining, shop.uncommitted, shop.unsynced) == (None, 0, 1)
    tail = UnreadTail(ORDERS, 95, 100)
    (shop,) = flow.evidence(tails={tail: True}).groups
    assert shop.remaining == 5
    flow.scene.target["group_offsets"] = {"shop": {COPY: 95}}
    flow.look()
    assert flow.evidence().groups[0].unsynced == 0
    assert shop.commits_read_at == flow.scene.source["groups_read_at"]["shop"]


def test_active_groups_without_any_commit_are_named_on_both_clusters() -> None:
    flow = Watched()
    with_group(flow, 95)
    states = {
        "shop": "stable",
        "live": "stable",
        "asked": "unknown",
        "gone": "empty",
        "elsewhere": "stable",
        "mm2slo.leader.us-to-eu": "stable",
        "connect-sink": "stable",
    }
    for view in (flow.scene.source, flow.scene.target):
        offsets = view.get("group_offsets", {}) | {"elsewhere": {TopicPartition("other", 0): 1}}
        view |= {"group_states": states, "group_offsets": offsets}
    flow.start()
    seen = flow.evidence()
    assert seen.uncommitted_source_groups == ("asked", "live")
    assert seen.uncommitted_target_groups == ("asked", "live")
    flow.scene.source["groups_complete"] = False
    flow.look()
    assert flow.evidence().uncommitted_source_groups == ()


def test_topics_of_the_target_that_a_group_reads_as_copies_need_commits_there() -> None:
    flow = Watched()
    with_group(flow, 95)
    flow.scene.source["group_offsets"]["shop"] |= {
        TopicPartition("eu.orders", 0): 7,
        TopicPartition("eu.orders", 1): 0,
        TopicPartition("asia.orders", 0): 7,
    }
    flow.start()
    assert flow.evidence().groups[0].unsynced_origins == ("orders",)
    flow.scene.target["group_offsets"] = {
        "shop": {COPY: 95, TopicPartition("orders", 0): 7, TopicPartition("orders", 1): 0}
    }
    flow.look()
    assert flow.evidence().groups[0].unsynced_origins == ()


def test_tail_without_a_record_is_nothing_to_read() -> None:
    flow = Watched()
    with_group(flow, 99)
    flow.start()
    tail = UnreadTail(ORDERS, 99, 100)
    assert flow.watch.unread_tails() == [tail]
    assert flow.evidence().groups[0].remaining is None
    assert flow.evidence(tails={tail: True}).groups[0].remaining == 1
    assert flow.evidence(tails={tail: False}).groups[0].remaining == 0


def test_commits_changed_when_they_were_first_read_as_they_are() -> None:
    flow = Watched()
    with_group(flow, 95)
    flow.start()
    first = flow.evidence().groups[0].commits_changed_at
    flow.scene.source["groups_read_at"] = {"shop": flow.now}
    flow.look()
    assert flow.evidence().groups[0].commits_changed_at == first
    with_group(flow, 97)
    flow.look()
    assert flow.evidence().groups[0].commits_changed_at != first


def test_last_stable_offset_below_the_end_is_an_open_transaction() -> None:
    flow = Watched()
    flow.start()
    seen = flow.evidence(read_at=flow.now, stable_ends={ORDERS: 97})
    assert seen.open_transactions.first == ("orders-0: 3 offsets",)
    assert flow.evidence(read_at=flow.now).unread_transactions.first == ("orders-0",)
    assert flow.evidence(read_at=flow.now, stable_ends={ORDERS: 100}).open_transactions.count == 0


def test_position_behind_the_end_and_fewer_partitions_are_named() -> None:
    flow = Watched()
    flow.log.live(90, 100)
    flow.start()
    assert flow.evidence().behind.first == ("orders-0: 10 records, by live",)
    flow.scene.target["topics"] = {"us.orders": 3}
    flow.look()
    assert flow.evidence().partition_differences.first == ("orders: 1, us.orders: 3",)


@pytest.mark.parametrize(("syncs", "expected"), [(False, 180.0), (True, 300.0)])
def test_groups_settle_after_a_flush_two_checkpoints_and_two_syncs(
    syncs: bool, expected: float
) -> None:
    flow = Watched(checkpoint_interval="60s", offset_flush_interval="60s")
    flow.scene.internals["connectors"] = checkpoint_connector(syncs_group_offsets=syncs)
    flow.start()
    assert flow.evidence().settles_after == expected


def test_growing_lag_is_known_after_a_minute() -> None:
    flow = Watched()
    flow.start()
    assert flow.evidence().lag_grows is None
    flow.look(15)
    assert flow.evidence().lag_grows is False


def test_evidence_survives_json() -> None:
    import json

    flow = Watched()
    with_group(flow, 95)
    flow.start()
    seen = flow.evidence(read_at=flow.now, stable_ends={ORDERS: 97})
    assert EVIDENCE.validate_json(json.dumps(asdict(seen), allow_nan=False)) == seen


def rule(
    user: str, operation: str, name: str, *, kind: Any = "topic", allows: bool = True
) -> AclRule:
    return AclRule(f"User:{user}", kind, AclPattern(name), operation, allows)


def test_access_names_denials_missing_readers_and_writers() -> None:
    source = [
        rule("shop", "Read", "orders"),
        rule("shop", "Read", "shop", kind="group"),
        rule("web", "Write", "orders"),
        rule("other", "Write", "unrelated"),
    ]
    target = [rule("web", "Write", "us.orders", allows=False)]
    facts = access_facts(1.0, source, target, {"orders": "us.orders"}, ["shop"])
    assert [(each.principal, each.what) for each in facts.denied] == [
        ("User:web", "Write on topic us.orders")
    ]
    assert [(each.principal, each.what) for each in facts.missing] == [
        ("User:shop", "Read on topic us.orders, group shop")
    ]
    assert facts.writers == ("User:web",)


class FakeCluster:
    """Answers of one cluster; an error answers everything with it."""

    def __init__(self, error: KafkaOperationError | None = None) -> None:
        self.error = error
        self.first: FirstRecord | None = None
        self.ranges: list[dict[TopicPartition, tuple[int, int]]] = []
        self.last_at = 0.0
        self.asked_times = 0

    def end_offsets(self, partitions: Any, isolation: str) -> OffsetReading:
        assert isolation == "read_committed"
        if self.error:
            raise self.error
        return OffsetReading(dict.fromkeys(partitions, 97), {}, 5.0, 6.0)

    def first_records(self, ranges: Any, isolation: str) -> FirstRecords:
        assert isolation == "read_uncommitted"
        if self.error:
            raise self.error
        self.ranges.append(dict(ranges))
        return FirstRecords(dict.fromkeys(ranges, self.first))

    def offsets_at(self, partitions: Any, timestamp: float) -> OffsetReading:
        """The last record of each partition, at offset 99, has the timestamp `last_at`."""
        if self.error:
            raise self.error
        self.asked_times += 1
        return OffsetReading(
            dict.fromkeys(partitions, 100 if timestamp > self.last_at else 99), {}, 5.0, 6.0
        )

    def acls(self) -> list[AclRule]:
        if self.error:
            raise self.error
        return [rule("web", "Write", "us.orders", allows=False)]


def reader(flow: Watched, source: FakeCluster, target: FakeCluster) -> CutoverReader:
    made = CutoverReader(
        Flow("us", "eu"),
        source,  # type: ignore[arg-type]
        target,  # type: ignore[arg-type]
        lambda _loop: None,
        clock=lambda: flow.now,
    )
    made.watch = flow.watch
    return made


def test_reader_reads_transactions_tails_and_acls() -> None:
    flow = Watched()
    with_group(flow, 99)
    flow.start()
    made = reader(flow, FakeCluster(), FakeCluster())
    made.read()
    seen = flow.watch.evidence(flow.now, made._reads)
    assert seen is not None
    assert (seen.transactions_read_at, seen.open_transactions.count) == (5.0, 1)
    assert (seen.groups[0].remaining, seen.access is not None) == (0, True)


def test_failing_reads_are_unknown() -> None:
    flow = Watched()
    with_group(flow, 99)
    flow.start()
    error = KafkaOperationError(
        ErrorKind.AUTHORIZATION, cluster="us", operation="describing ACLs", detail="denied"
    )
    made = reader(flow, FakeCluster(error), FakeCluster())
    made.read()
    seen = flow.watch.evidence(flow.now, made._reads)
    assert seen is not None
    assert seen.transactions_read_at is None
    assert seen.groups[0].remaining is None
    assert seen.quiet_after is None
    assert seen.access is not None
    assert "describing ACLs" in (seen.access.problem or "")


def test_tails_of_two_groups_on_one_partition_are_read_one_after_the_other() -> None:
    flow = Watched()
    with_group(flow, 99)
    flow.scene.source["group_offsets"] = {"shop": {ORDERS: 99}, "web": {ORDERS: 97}}
    flow.scene.source["groups_read_at"] = {"shop": flow.now + 4, "web": flow.now + 4}
    flow.start()
    source = FakeCluster()
    made = reader(flow, source, FakeCluster())
    made.read()
    made.read()
    assert source.ranges == [{ORDERS: (99, 100)}, {ORDERS: (97, 100)}]
    seen = flow.watch.evidence(flow.now, made._reads)
    assert seen is not None
    assert [each.remaining for each in seen.groups] == [0, 0]


@pytest.mark.parametrize("age", [0.5, 3.0, 100.0, 7200.0, 86_400.0 * 10])
def test_time_of_the_last_record_is_found_once_for_given_ends(age: float) -> None:
    flow = Watched()
    flow.start()
    source = FakeCluster()
    source.last_at = flow.now - age
    made = reader(flow, source, FakeCluster())
    made.read()
    seen = flow.watch.evidence(flow.now, made._reads)
    assert seen is not None
    assert seen.quiet_after is not None
    assert source.last_at < seen.quiet_after <= source.last_at + max(1.0, 0.05 * age) + 1e-6
    asked = source.asked_times
    assert asked <= 40
    made.read()
    assert source.asked_times == asked
    flow.write()
    flow.look()
    seen = flow.watch.evidence(flow.now, made._reads)
    assert seen is not None
    assert seen.quiet_after is None


def test_partition_with_a_record_and_without_a_commit_was_not_seen() -> None:
    flow = Watched()
    other = flow.scene.logs[TopicPartition("orders", 1)] = type(flow.log)()
    other.live(7, 7)
    with_group(flow, 100)
    flow.start()
    tail = UnreadTail(TopicPartition("orders", 1), 0, 7)
    assert flow.watch.unread_tails() == [tail]
    found = [flow.evidence(tails=tails).groups[0] for tails in ({}, {tail: True}, {tail: False})]
    assert [(each.uncommitted, each.remaining) for each in found] == [(0, None), (1, 0), (0, 0)]


def test_commit_before_the_start_of_the_log_has_the_records_of_the_log_to_read() -> None:
    flow = Watched()
    flow.log.start = 50
    with_group(flow, 10)
    flow.start()
    tail = UnreadTail(ORDERS, 50, 100)
    assert flow.watch.unread_tails() == [tail]
    assert flow.evidence(tails={tail: True}).groups[0].remaining == 50


def test_groups_that_cannot_be_read_are_named_by_cluster_of_either_side() -> None:
    flow = Watched()
    flow.scene.source["unreadable_groups"] = frozenset({"closed"})
    flow.scene.target["unreadable_groups"] = frozenset({"shut"})
    flow.start()
    assert set(flow.evidence().unread_groups.first) == {"closed", "shut"}


def test_group_of_an_unknown_state_may_have_members() -> None:
    flow = Watched()
    with_group(flow, 100)
    flow.scene.source["group_states"] = {"shop": "unknown"}
    flow.start()
    assert flow.evidence().groups[0].members_on_source is None


def test_groups_are_as_old_as_the_older_listing() -> None:
    flow = Watched()
    flow.scene.source["groups_listed_at"] = 1008.0
    flow.start()
    assert flow.evidence().groups_listed_at is None
    flow.scene.target["groups_listed_at"] = 1006.0
    flow.look()
    assert flow.evidence().groups_listed_at == 1006.0


def test_target_with_acls_and_a_source_without_is_not_judged() -> None:
    target = [rule("mm2", "Write", "us.orders")]
    assert access_facts(1.0, [], target, {"orders": "us.orders"}, ["shop"]).unjudged
    assert not access_facts(1.0, [], [], {"orders": "us.orders"}, ["shop"]).unjudged
