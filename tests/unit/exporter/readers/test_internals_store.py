"""State of a flow from its internal topics, record by record."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offset_sync_slots import OffsetSyncStore

from mm2slo_core.indicators.group_readiness import NewestCheckpoint
from mm2slo_core.offset_translation import Bounds
from mm2slo_core.records.mirror_records import Checkpoint, OffsetSync
from mm2slo_core.state_record import RecoveryPoint, StateKey, StateKind, encode_state
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import NewestSync
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_kafka.tailed_topic import TailRecord

ORDERS = TopicPartition("orders", 0)
PAY = TopicPartition("pay", 2)
COPY = TopicPartition("us.orders", 0)
SYNCS, OFFSETS = InternalTopic.OFFSET_SYNCS, InternalTopic.COMMITTED_OFFSETS
CHECKPOINTS, STATUS = InternalTopic.CHECKPOINTS, InternalTopic.STATUS
CONFIGS, HEARTBEAT_CONFIGS = InternalTopic.CONNECTOR_CONFIGS, InternalTopic.HEARTBEAT_CONFIGS
STATE = InternalTopic.STATE
NAMES = ("syncs", "committed", "checkpoints", "states", "assigned", "connectors")
RECOVERY = encode_state(RecoveryPoint(5, 1.0, 9.0))
SOURCE, MARKS = "MirrorSourceConnector", "MirrorCheckpointConnector"
BEATS = "MirrorHeartbeatConnector"
FENCING = (b"tasks-fencing-MirrorSourceConnector", b'{"tasks":1}')


class Store:
    """A store, and the malformed records that it reported."""

    def __init__(
        self, *, dense: bool = True, detects: bool = True, forgetful: str | None = None
    ) -> None:
        self.malformed: list[tuple[str, str]] = []
        self.store = InternalsStore(
            flow_slug="us-to-eu",
            source_alias="us",
            source_connector=SOURCE,
            connectors=frozenset({SOURCE, MARKS}),
            heartbeat_connector=BEATS,
            malformed=lambda kind, reason: self.malformed.append((kind.value, reason)),
            dense=dense,
            detects_transactions=detects,
            forgetful_connector=forgetful,
        )

    def take(
        self, topic: InternalTopic, *records: tuple[bytes | None, bytes | None], at_ms: int = 5_500
    ) -> None:
        self.store.apply(topic, [record(key, value, at_ms) for key, value in records])

    def reaches(self, *offsets: int) -> list[bool]:
        found = self.view.offset_map(ORDERS)
        return [found.reaches(offset) for offset in offsets]

    def commit(self, log_offset: int, upstream: int, *, end: int, connector: str = SOURCE) -> None:
        """A commit at *log_offset* of the offsets topic, which ends at *end*."""
        key, value = committed(upstream, connector=connector)
        self.store.apply(OFFSETS, [TailRecord(0, log_offset, 5_500, key, value, None)])
        self.store.read_up_to(OFFSETS, {0: end})

    @property
    def view(self) -> Any:
        return self.store.view(())


def record(key: bytes | None, value: bytes | None, at_ms: int = 5_500) -> TailRecord:
    return TailRecord(0, 0, at_ms, key, value, None)


def js(value: object) -> bytes:
    return json.dumps(value).encode()


def sync(upstream: int, downstream: int, here: TopicPartition = ORDERS) -> tuple[bytes, bytes]:
    made = OffsetSync(here, upstream, downstream)
    return made.encode_key(), made.encode_value()


def committed(
    offset: int | None, *, connector: str = SOURCE, cluster: str = "us", topic: str = "orders"
) -> tuple[bytes, bytes | None]:
    key = js([connector, {"cluster": cluster, "partition": 0, "topic": topic}])
    return key, None if offset is None else js({"offset": offset})


def checkpoint(group: str, upstream: int) -> tuple[bytes, bytes]:
    made = Checkpoint(group, COPY, upstream, upstream - 1, "")
    return made.encode_key(), made.encode_value()


def status(
    connector: str, state: str | None, task: int | None = None
) -> tuple[bytes, bytes | None]:
    key = f"status-connector-{connector}" if task is None else f"status-task-{connector}-{task}"
    value = {"state": state, "trace": None, "worker_id": "w", "generation": 1}
    return key.encode(), None if state is None else js(value)


def task(number: int, *partitions: str, connector: str = SOURCE) -> tuple[bytes, bytes]:
    assigned = {"task.assigned.partitions": ",".join(partitions)}
    return f"task-{connector}-{number}".encode(), js({"properties": assigned})


def connector(name: str, **settings: str) -> tuple[bytes, bytes]:
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return f"connector-{name}".encode(), js({"properties": {"name": name, **named}})


def test_view_of_empty_store_lists_topics_it_waits_for() -> None:
    found = Store().store.view(("mm2-status on eu",))
    assert found.waiting_for == ("mm2-status on eu",)
    assert (found.syncs, found.committed, found.checkpoints, found.states) == ({}, {}, {}, {})
    assert found.assigned is None
    assert found.assignments is None
    assert not found.connectors.syncs_group_offsets
    assert found.offset_map(ORDERS) is None


def test_view_is_the_same_object_until_something_changes() -> None:
    store = Store()
    first = store.view
    assert store.view is first
    assert store.store.view(("mm2-offsets",)) is not first
    store.take(OFFSETS, committed(41))
    second = store.view
    assert (first.committed, second.committed) == ({}, {ORDERS: 41})
    assert store.view is second
    store.store.clear(OFFSETS)
    assert store.view.committed == {}


def test_offset_syncs_update_newest_sync_and_offset_map() -> None:
    store = Store()
    store.take(SYNCS, sync(100, 50), sync(200, 150), sync(7, 7, PAY))
    assert store.view.syncs == {ORDERS: NewestSync(200, 150, 5.5), PAY: NewestSync(7, 7, 5.5)}
    found = store.view.offset_map(ORDERS)
    assert found.failover(120, 60) == (Bounds(70, 70), Bounds(10, 10))


def test_offset_map_of_target_with_markers_gives_bounds() -> None:
    store = Store(dense=False)
    store.take(SYNCS, sync(100, 50), sync(200, 160))
    assert store.view.offset_map(ORDERS).failover(120, 0).resume == Bounds(51, 160)


def test_offset_map_follows_later_syncs() -> None:
    store = Store()
    store.take(SYNCS, sync(100, 50))
    held = store.view.offset_map(ORDERS)
    store.take(SYNCS, sync(200, 150))
    assert held.failover(200, 0).resume == Bounds(150, 150)


def test_committed_offsets_of_other_connectors_and_clusters_are_ignored() -> None:
    store = Store()
    store.take(
        OFFSETS,
        committed(41),
        committed(99, connector="Other"),
        committed(98, cluster="ap"),
        committed(5, topic="pay"),
    )
    pay = TopicPartition("pay", 0)
    assert store.view.committed == {ORDERS: 41, pay: 5}
    store.take(OFFSETS, committed(None, topic="pay"), committed(None, connector="Other"))
    assert store.view.committed == {ORDERS: 41}


def test_view_has_newest_checkpoint_per_group_and_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mm2slo_exporter.readers.internals_store.time.time", lambda: 7.0)
    store = Store()
    store.take(CHECKPOINTS, checkpoint("a", 10), checkpoint("b", 20))
    assert store.view.checkpoints == {
        "a": {COPY: NewestCheckpoint(10, 9, 5.5, 5.5)},
        "b": {COPY: NewestCheckpoint(20, 19, 5.5, 5.5)},
    }
    store.take(CHECKPOINTS, checkpoint("a", 30))
    assert store.view.checkpoints["a"] == {COPY: NewestCheckpoint(30, 29, 5.5, 7.0)}
    store.take(CHECKPOINTS, (checkpoint("b", 20)[0], None))
    assert store.view.checkpoints.keys() == {"a"}


def test_states_of_other_connectors_are_ignored() -> None:
    store = Store()
    store.take(
        STATUS,
        status(SOURCE, "RUNNING"),
        status(SOURCE, "FAILED", 1),
        status("Other", "RUNNING"),
        status(MARKS, "RUNNING", 0),
    )
    assert store.view.states == {
        (SOURCE, None): "RUNNING",
        (SOURCE, 1): "FAILED",
        (MARKS, 0): "RUNNING",
    }
    store.take(STATUS, status(SOURCE, None, 1), status(SOURCE, "PAUSED"))
    assert store.view.states == {(SOURCE, None): "PAUSED", (MARKS, 0): "RUNNING"}


def test_restart_since_3_7_1_keeps_older_offset_syncs() -> None:
    store = Store()
    store.take(STATUS, status(MARKS, "RUNNING", 0), at_ms=7_000)
    store.take(SYNCS, sync(100, 100), sync(200, 200), at_ms=6_000)
    assert store.reaches(99, 100, 200) == [False, True, True]
    assert store.view.translation_restarted_at is None


def test_restart_before_3_7_1_forgets_older_offset_syncs() -> None:
    store = Store(forgetful=MARKS)
    store.take(STATUS, status(MARKS, "RUNNING", 0), at_ms=7_000)
    store.take(SYNCS, sync(100, 100), sync(200, 200), at_ms=6_000)
    store.take(SYNCS, sync(300, 300), sync(400, 400), at_ms=8_000)
    assert store.reaches(199, 200, 350) == [False, True, True]
    assert store.view.translation_restarted_at == 7.0
    # Bounds of the redelivery do not depend on what MirrorMaker 2 forgot.
    assert store.view.offset_map(ORDERS).failover(150, 0).resume == Bounds(150, 150)
    store.take(STATUS, status(MARKS, "RUNNING", 0), at_ms=9_000)
    assert store.reaches(399, 400) == [False, True]
    store.take(SYNCS, sync(350, 350), at_ms=10_000)
    assert store.reaches(349, 350) == [False, True]


@pytest.mark.parametrize(
    "known", [[], [status(SOURCE, "RUNNING", 0)], [status(MARKS, "RUNNING")],
              [status(MARKS, "FAILED", 0)]],
)  # fmt: skip
def test_offset_syncs_are_kept_without_running_checkpoint_task(
    known: list[tuple[bytes, bytes | None]],
) -> None:
    store = Store(forgetful=MARKS)
    store.take(STATUS, *known, at_ms=7_000)
    store.take(SYNCS, sync(100, 100), sync(200, 200), at_ms=6_000)
    assert store.reaches(99, 100) == [False, True]


@given(st.lists(st.integers(0, 400), min_size=1, max_size=90), st.integers(0, 90))
def test_restart_before_3_7_1_translates_the_offsets_that_kafka_does(
    upstreams: list[int], before: int
) -> None:
    store, kafka = Store(forgetful=MARKS), OffsetSyncStore(latest_only=True)
    store.take(STATUS, status(MARKS, "RUNNING", 0), at_ms=7_000)
    for number, upstream in enumerate(upstreams):
        if number == before:
            kafka.finish_initial_read()
        store.take(SYNCS, sync(upstream, number), at_ms=6_000 if number < before else 8_000)
        kafka.add(OffsetSync(ORDERS, upstream, number))
    kafka.finish_initial_read()
    translated = [kafka.translate_downstream(ORDERS, offset) for offset in range(402)]
    assert store.reaches(*range(402)) == [isinstance(each, int) for each in translated]


def test_offset_syncs_that_are_read_again_or_removed_are_forgotten() -> None:
    store = Store(forgetful=MARKS)
    store.take(STATUS, status(MARKS, "RUNNING", 0), at_ms=7_000)
    store.take(SYNCS, sync(100, 100), at_ms=8_000)
    store.store.clear(SYNCS)
    store.take(SYNCS, sync(150, 150), sync(200, 200), at_ms=6_000)
    assert store.reaches(199, 200) == [False, True]
    store.take(SYNCS, (sync(0, 0)[0], None), sync(50, 50), at_ms=9_000)
    assert store.reaches(49, 50) == [False, True]


def test_assignments_of_missing_tasks_are_ignored() -> None:
    store = Store()
    store.take(CONFIGS, task(0, "orders-0"), task(1, "pay-2"), task(0, "x-0", connector="Other"))
    assert store.view.assigned == {ORDERS, PAY}
    assert store.view.assignments == {0: (ORDERS,), 1: (PAY,)}
    store.take(STATUS, status(SOURCE, "RUNNING"), status(SOURCE, "RUNNING", 0))
    assert store.view.assigned == {ORDERS}
    assert store.view.assignments == {0: (ORDERS,)}
    store.take(STATUS, status(SOURCE, "RUNNING", 1))
    assert store.view.assigned == {ORDERS, PAY}
    store.take(CONFIGS, (b"task-MirrorSourceConnector-1", None))
    assert store.view.assigned == {ORDERS}


def test_commits_of_a_task_are_those_of_any_of_its_partitions() -> None:
    store = Store()
    store.take(OFFSETS, committed(5), at_ms=1_000)  # before assignments are known
    assert store.view.task_commits(ORDERS) is None
    store.take(CONFIGS, task(0, "orders-0", "x-0"), task(1, "pay-2"))
    assert store.view.task_commits(ORDERS) == (None, None)
    store.take(OFFSETS, committed(7, topic="x"), at_ms=2_000)
    assert store.view.task_commits(ORDERS) == (2.0, 2.0)
    assert store.view.task_commits(PAY) == (None, 2.0)
    store.take(CONFIGS, task(0, "x-0"), task(1, "pay-2", "orders-0"))
    store.take(OFFSETS, committed(9), at_ms=3_000)
    assert [store.view.task_commits(each) for each in (ORDERS, PAY)] == [(3.0, 3.0), (3.0, 3.0)]


def test_sync_group_offsets_follows_connector_setting() -> None:
    store = Store()
    setting = {"sync_group_offsets_enabled": "true"}
    store.take(CONFIGS, connector("Other", **setting))
    assert not store.view.connectors.syncs_group_offsets
    store.take(CONFIGS, connector(MARKS, **setting))
    assert store.view.connectors.syncs_group_offsets
    store.take(CONFIGS, (b"connector-MirrorCheckpointConnector", None))
    assert not store.view.connectors.syncs_group_offsets


@pytest.mark.parametrize(
    ("topic", "key", "value", "reason"),
    [
        (SYNCS, None, b"x", "null_key"),
        (SYNCS, sync(1, 1)[0], b"\x00", "truncated"),
        (CHECKPOINTS, checkpoint("a", 1)[0], b"\x00\x09" + bytes(18), "unknown_version"),
        (OFFSETS, b"{", b"{}", "invalid_json"),
        (CHECKPOINTS, checkpoint("a", 1)[0][:5], checkpoint("a", 1)[1], "truncated"),
        (STATUS, status(SOURCE, "RUNNING")[0], b"[]", "unexpected_shape"),
        (CONFIGS, b"connector-" + MARKS.encode(), b"not json", "invalid_json"),
        (STATE, b"us-to-eu", b"{}", "unexpected_shape"),
        (STATE, b"us-to-eu/recovery/", b'{"v":2}', "unknown_version"),
    ],
)
def test_malformed_record_is_counted_and_skipped(
    topic: InternalTopic, key: bytes | None, value: bytes, reason: str
) -> None:
    store = Store()
    store.take(topic, (key, value))
    store.take(SYNCS, sync(3, 4))
    assert store.malformed == [(topic.value, reason)]
    assert store.view.syncs == {ORDERS: NewestSync(3, 4, 5.5)}


def test_clear_drops_state_of_one_topic_only() -> None:
    store = Store()
    store.take(SYNCS, sync(100, 50))
    store.take(OFFSETS, committed(41))
    store.take(CHECKPOINTS, checkpoint("a", 10))
    store.take(STATUS, status(SOURCE, "RUNNING", 0))
    store.take(CONFIGS, task(0, "orders-0"), connector(MARKS, sync_group_offsets_enabled="true"))
    store.take(HEARTBEAT_CONFIGS, connector(BEATS))
    store.take(STATE, (b"us-to-eu/recovery/", RECOVERY), (b"ap-to-eu/recovery/", RECOVERY))
    assert list(store.view.saved.records) == [StateKey("us-to-eu", StateKind.RECOVERY, "")]
    for topic in InternalTopic:
        before = store.view
        store.store.clear(topic)
        after = store.view
        changed = {
            name for name in (*NAMES, "saved") if getattr(before, name) != getattr(after, name)
        }
        assert (
            changed
            == {
                SYNCS: {"syncs"},
                OFFSETS: {"committed"},
                CHECKPOINTS: {"checkpoints"},
                STATUS: {"states"},
                CONFIGS: {"assigned", "connectors"},
                HEARTBEAT_CONFIGS: {"connectors"},
                STATE: {"saved"},
            }[topic]
        )
    assert store.view.offset_map(ORDERS) is None
    assert not store.view.connectors.syncs_group_offsets


def test_view_is_immutable() -> None:
    store = Store()
    store.take(OFFSETS, committed(41))
    store.take(CHECKPOINTS, checkpoint("a", 10))
    held = store.view
    store.take(OFFSETS, committed(42))
    store.take(CHECKPOINTS, checkpoint("a", 11))
    assert held.committed == {ORDERS: 41}
    assert held.checkpoints["a"][COPY].upstream == 10


def test_fenced_tasks_and_markers_after_commits_are_exactly_once() -> None:
    store = Store()
    store.commit(3, 99, end=5)
    assert store.view.connectors.transactional is False  # compaction leaves such ends, too
    store.take(CONFIGS, FENCING)
    assert store.view.connectors.transactional is True


def test_fenced_tasks_without_markers_are_no_evidence_of_exactly_once() -> None:
    """The record remains when exactly-once support is switched off."""
    store = Store()
    store.take(CONFIGS, FENCING)
    store.commit(3, 99, end=4)
    store.commit(4, 0, end=5, connector=MARKS)
    assert store.view.connectors.transactional is False


def test_fenced_tasks_of_another_connector_are_ignored() -> None:
    store = Store()
    store.take(CONFIGS, (b"tasks-fencing-jdbc", b'{"tasks":1}'))
    store.commit(3, 99, end=5)
    assert store.view.connectors.transactional is False


def test_exactly_once_is_not_looked_for_if_settings_are_configured() -> None:
    store = Store(detects=False)
    store.take(CONFIGS, FENCING)
    store.commit(3, 99, end=5)
    assert store.view.connectors.transactional is False


def test_exactly_once_widens_bounds_of_syncs_that_were_read_before() -> None:
    """Target offsets between two syncs may then be markers, not records."""
    store = Store()
    store.take(SYNCS, sync(0, 0), sync(100, 90))
    store.take(CONFIGS, FENCING)
    assert store.view.offset_map(ORDERS).failover(50, 0).resume == Bounds(40, 50)
    store.commit(3, 99, end=5)
    assert store.view.offset_map(ORDERS).failover(50, 0).resume == Bounds(1, 90)


def test_heartbeat_connector_of_opposite_flow_is_in_view() -> None:
    store = Store()
    config = js({"properties": {"emit.heartbeats.enabled": "false"}})
    store.take(HEARTBEAT_CONFIGS, (b"connector-MirrorHeartbeatConnector", config))
    store.take(HEARTBEAT_CONFIGS, (b"connector-MirrorSourceConnector", js({"properties": {}})))
    assert store.view.connectors.heartbeats.settings == {"emit.heartbeats.enabled": "false"}
    assert store.view.connectors.by_name == {}
    store.take(HEARTBEAT_CONFIGS, (b"connector-MirrorHeartbeatConnector", None))
    assert store.view.connectors.heartbeats is None
