"""Lag of consumer groups on both clusters, in records and seconds."""

from dataclasses import replace
from typing import Any, cast

import pytest
from flow_observations import Scene

from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.state.group_lag import FlowGroupLags, GroupLag, LagSum

POLL_TIME = 0.2
"""Seconds between the request of end offsets and their observation, as in `Scene`."""
ORDERS, COPY = TopicPartition("orders", 0), TopicPartition("us.orders", 0)


def unread(records: int, seconds: float) -> LagSum:
    return LagSum(records, cast("float", pytest.approx(seconds)))


class Groups:
    """One topic; the commits of `app` are read on both clusters when their ends are requested."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.log = self.scene.add("orders")
        self.lags = FlowGroupLags(Flow("us", "eu"))
        self.at = 1000.0
        self.commits_age = POLL_TIME
        """Seconds before a reading at which the commits were read."""

    def read(
        self, *, end: int, commit: int | None, copies: int = 0, target_commit: int | None = None
    ) -> dict[str, LagSum]:
        """Read both clusters once, 10 s later; the lag on the topic by cluster."""
        self.at += 10.0
        self.log.end, self.log.target_end = end, copies
        self._commit(self.scene.source, ORDERS, commit)
        self._commit(self.scene.target, COPY, target_commit)
        return {each.cluster: each.by_topic["orders"] for each in self.observe()}

    def observe(self) -> tuple[GroupLag, ...]:
        return self.lags.observe(self.scene.look(self.at))

    def _commit(self, view: dict[str, Any], partition: TopicPartition, commit: int | None) -> None:
        view["group_offsets"] = {} if commit is None else {"app": {partition: commit}}
        view["groups_read_at"] = {} if commit is None else {"app": self.at - self.commits_age}


def test_lag_counts_records_and_age_on_both_clusters() -> None:
    groups = Groups()
    assert groups.read(end=100, commit=100, copies=90, target_commit=90) == {
        "us": LagSum(0, 0.0),
        "eu": LagSum(0, 0.0),
    }
    found = groups.read(end=200, commit=150, copies=190, target_commit=90)
    # Records arrive evenly between the request of a poll and the response of the next one.
    assert found == {"us": unread(50, 5.15), "eu": unread(100, 10.2)}
    found = groups.read(end=200, commit=150, copies=190, target_commit=190)
    assert found == {"us": unread(50, 15.15), "eu": unread(0, 0.0)}


def test_lag_holds_until_the_commits_are_read_again() -> None:
    groups = Groups()
    groups.read(end=100, commit=100)
    before = groups.read(end=200, commit=150)
    groups.at, groups.log.end = groups.at + 5.0, 300
    (held,) = groups.observe()
    assert held.by_topic["orders"] == before["us"]


@pytest.mark.parametrize(
    ("commit", "records"),
    [(150, 30), (180, 0), (185, 0)],  # the group may have committed more than the estimate
)
def test_lag_counts_records_that_had_arrived_when_commits_were_read(
    commit: int, records: int
) -> None:
    groups = Groups()
    groups.read(end=100, commit=100, copies=100, target_commit=100)
    groups.commits_age += 2.0
    found = groups.read(end=200, commit=commit, copies=200, target_commit=commit)
    assert {cluster: each.records for cluster, each in found.items()} == dict.fromkeys(
        ("us", "eu"), records
    )
    # Without new records, the next reading counts all of them.
    found = groups.read(end=200, commit=commit, copies=200, target_commit=commit)
    assert {each.records for each in found.values()} == {200 - commit}


def test_lag_of_commits_read_before_two_polls_uses_the_first() -> None:
    groups = Groups()
    groups.read(end=100, commit=100)
    groups.commits_age += 15.0
    assert groups.read(end=200, commit=90)["us"].records == 10


def test_lag_after_the_clock_stepped_back_is_that_of_the_poll() -> None:
    groups = Groups()
    groups.read(end=100, commit=100)
    groups.commits_age += 10.0
    groups.at -= 10.01
    assert groups.read(end=200, commit=90)["us"].records == 110


def test_lag_in_seconds_of_records_before_the_first_reading_is_unknown() -> None:
    groups = Groups()
    assert groups.read(end=100, commit=40)["us"] == LagSum(60, None)
    assert groups.read(end=200, commit=100)["us"] == unread(100, 10.2)


def test_lag_of_commit_below_log_start_counts_what_is_left() -> None:
    groups = Groups()
    groups.log.start = 70
    assert groups.read(end=100, commit=40)["us"].records == 30


def test_lag_of_commit_beyond_the_end_is_unknown() -> None:
    # The topic was truncated or re-created.
    assert Groups().read(end=100, commit=120)["us"] == LagSum(None, None)


@pytest.mark.parametrize("side", ["source", "target"])
def test_lag_on_unreadable_cluster_is_absent(side: str) -> None:
    groups = Groups()
    groups.read(end=100, commit=90, copies=90, target_commit=80)
    setattr(groups.scene, f"{side}_readable", False)
    (left,) = groups.observe()
    assert left.cluster == ("eu" if side == "source" else "us")


def test_lag_of_unreadable_group_is_absent() -> None:
    groups = Groups()
    groups.read(end=100, commit=90)
    groups.scene.source["unreadable_groups"] = frozenset({"app"})
    assert groups.observe() == ()


def test_group_without_commits_on_replicated_topics_is_left_out() -> None:
    groups = Groups()
    groups.scene.source["group_offsets"] = {"app": {TopicPartition("private", 0): 5}}
    assert groups.observe() == ()


def test_lag_of_several_partitions_is_their_sum_and_greatest_age() -> None:
    groups = Groups()
    groups.scene.logs[TopicPartition("orders", 1)] = type(groups.log)()
    groups.scene.logs[TopicPartition("orders", 1)].end = 7
    both = {"app": {ORDERS: 100, TopicPartition("orders", 1): 7}}
    groups.log.end = 100
    groups.scene.source |= {"group_offsets": both, "groups_read_at": {"app": 1000.0}}
    groups.observe()
    groups.at, groups.log.end = 1010.0, 104
    groups.scene.logs[TopicPartition("orders", 1)].end = 8
    groups.scene.source["groups_read_at"] = {"app": 1009.0}
    (lag,) = groups.observe()
    assert lag.by_topic == {"orders": unread(5, 10.2)}


def test_state_and_members_are_those_of_each_cluster() -> None:
    groups = Groups()
    groups.scene.source |= {"group_states": {"app": "stable"}, "group_members": {"app": 3}}
    groups.scene.target["group_states"] = {"app": "empty"}
    groups.read(end=100, commit=90, copies=90, target_commit=80)
    found = {each.cluster: (each.state, each.members) for each in groups.observe()}
    assert found == {"us": ("stable", 3), "eu": ("empty", None)}


def test_lag_in_seconds_after_unread_end_is_unknown() -> None:
    groups = Groups()
    groups.read(end=100, commit=100)
    groups.at += 10.0
    unread_ends = groups.scene.look(groups.at)
    assert unread_ends.source_offsets is not None
    groups.lags.observe(
        replace(unread_ends, source_offsets=replace(unread_ends.source_offsets, ends={}))
    )
    assert groups.read(end=200, commit=100)["us"] == LagSum(100, None)


def test_lag_of_unmoved_group_is_measured_when_its_topic_moves() -> None:
    groups = Groups()
    assert groups.read(end=100, commit=100)["us"] == LagSum(0, 0.0)
    assert groups.read(end=100, commit=100)["us"] == LagSum(0, 0.0)
    assert groups.read(end=130, commit=100)["us"] == unread(30, 10.2)
