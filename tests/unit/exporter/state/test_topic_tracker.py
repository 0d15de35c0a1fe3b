"""A topic over time: drift, assignments, re-creations, sums."""

from typing import Any

import pytest
from flow_observations import Scene, flow_config

from mm2slo_core.config.flow_config import DEFAULT_CONFIG_PROPERTIES_EXCLUDE
from mm2slo_core.indicators.replication_lag import Headroom, RetentionLimit
from mm2slo_core.topic_selection import SyncedSettings
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.flow_observation import NewestSync
from mm2slo_exporter.state.flow_report import TopicState
from mm2slo_exporter.state.partition_reading import FlowRules
from mm2slo_exporter.state.topic_tracker import TopicTracker

FLOW = flow_config()
RULES = FlowRules(
    stall_after=30.0,
    flush_interval=60.0,
    exactly_once=False,
    shared_target=False,
    reads_committed=False,
)
SETTINGS = SyncedSettings(DEFAULT_CONFIG_PROPERTIES_EXCLUDE)


class Watched:
    """The topic orders with two partitions, and its tracker."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.scene.add("orders", partitions=2)
        self.first, self.second = self.scene.logs.values()
        self.tracker = TopicTracker()

    def look(self, at: float) -> TopicState:
        seen = self.scene.look(at)
        return self.tracker.judge(seen, seen.plan.pairs[0], RULES, SETTINGS)


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_topic_totals_are_sums_of_partitions(watched: Watched) -> None:
    watched.first.live(10, 10)
    watched.second.live(5, 5)
    watched.look(0.0)
    watched.first.live(25, 30)
    watched.second.live(9, 9)
    found = watched.look(5.0)
    assert (found.source_records_total, found.replicated_records_total) == (24, 19)
    assert [each.lag_records for each in found.partitions] == [5, 0]
    assert (found.source_partition_count, found.target_partition_count) == (2, 2)


def test_missing_copy_is_reported_once_target_was_listed(watched: Watched) -> None:
    watched.scene.missing_copies.add("orders")
    assert watched.look(0.0).missing_on_target
    watched.scene.target["topics_read_at"] = None
    assert not watched.look(5.0).missing_on_target


def test_config_drift_names_differing_settings(watched: Watched) -> None:
    watched.scene.source["topic_configs"] = {
        "orders": {"retention.ms": "1", "min.insync.replicas": "2"}
    }
    assert watched.look(0.0).config_drift == ()  # the copy's settings were not read yet
    watched.scene.target["topic_configs"] = {"us.orders": {"retention.ms": "2", "x": "y"}}
    assert watched.look(5.0).config_drift == ("retention.ms", "x")
    watched.scene.target["topic_configs"] = {"us.orders": {"retention.ms": "1"}}
    assert watched.look(10.0).config_drift == ()


def test_assigned_missing_and_unassigned_partitions(watched: Watched) -> None:
    found = watched.look(0.0)
    assert (found.assigned_missing, found.unassigned) == (None, None)
    watched.scene.internals["assigned"] = frozenset({TopicPartition("orders", 1)})
    found = watched.look(5.0)
    assert (found.assigned_missing, found.unassigned) == (0, 1)
    watched.scene.target["topics"] = {"us.orders": 1}
    found = watched.look(10.0)
    assert (found.assigned_missing, found.unassigned) == (1, 1)
    watched.scene.target["topics_read_at"] = None
    assert watched.look(15.0).assigned_missing is None


@pytest.mark.parametrize(
    ("side", "topic", "counts"), [("source", "orders", (1, 0)), ("target", "us.orders", (0, 1))]
)
def test_new_topic_id_counts_recreation_of_that_side(
    watched: Watched, side: str, topic: str, counts: tuple[int, int]
) -> None:
    cluster: dict[str, Any] = getattr(watched.scene, side)
    for at, topic_id in enumerate(("a", "a", None, "b", "b")):
        cluster["topic_ids"] = {} if topic_id is None else {topic: topic_id}
        found = watched.look(float(at))
    assert (found.source_recreations_total, found.target_recreations_total) == counts


def test_recreated_topic_resets_positions_and_keeps_totals(watched: Watched) -> None:
    watched.scene.source["topic_ids"] = {"orders": "a"}
    watched.first.live(100, 100)
    watched.look(0.0)
    watched.first.live(110, 110)
    watched.look(5.0)
    watched.scene.source["topic_ids"] = {"orders": "b"}
    watched.first.live(112, 3)
    watched.first.sync = NewestSync(0, 110, 9.0)
    found = watched.look(10.0)
    assert found.partitions[0].next_offset == 2
    assert (found.source_records_total, found.replicated_records_total) == (10, 10)
    assert (found.truncations_total, found.lost_records_total) == (0, 0)


def test_headroom_uses_effective_retention(watched: Watched) -> None:
    watched.first.live(100, 100)
    assert watched.look(0.0).partitions[0].headroom == Headroom(100, None, RetentionLimit.UNKNOWN)
    watched.scene.source["retention_configs"] = {
        "orders": {
            "cleanup.policy": "delete",
            "retention.ms": "60000",
            "retention.bytes": "-1",
        }
    }
    assert watched.look(5.0).partitions[0].headroom == Headroom(100, 60.0, RetentionLimit.TIME)


def test_unreadable_side_has_no_offsets(watched: Watched) -> None:
    watched.first.live(10, 12)
    watched.look(0.0)
    watched.scene.target_readable = False
    found = watched.look(5.0).partitions[0]
    assert (found.source_end, found.target_end, found.lag_records) == (12, None, 2)
    watched.scene.target_readable, watched.scene.source_readable = True, False
    found = watched.look(10.0).partitions[0]
    assert (found.source_end, found.target_end, found.lag_records) == (None, 10, None)
