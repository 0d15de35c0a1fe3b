"""Cluster metadata: each stage has its own interval and fails alone."""

import logging
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import ClusterView
from mm2slo_exporter.readers.cluster_reader import ClusterReader, ReadIntervals, listing_interval
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import (
    ConfigEntry,
    ConfigReading,
    GroupListing,
    GroupsReading,
    TopicIdentity,
    TopicListing,
)
from mm2slo_kafka.group_worker import GroupOffsets, GroupRead
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError

ORDERS = TopicPartition("orders", 0)
RETENTION = {"cleanup.policy": "delete", "retention.ms": "1", "retention.bytes": "-1"}


def problem(kind: ErrorKind, operation: str) -> KafkaOperationError:
    return KafkaOperationError(kind, cluster="us", operation=operation, detail="no")


@dataclass
class Cluster:
    """A cluster with one topic and two groups, whose requests can fail."""

    alias: str = "us"
    down: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    asked_ids: list[list[str]] = field(default_factory=list)
    generation: str = "id"
    counts: dict[str, int] = field(default_factory=lambda: {"orders": 3})
    group_problems: dict[str, KafkaOperationError] = field(default_factory=dict)
    hidden_groups: set[str] = field(default_factory=set)
    asked_groups: list[list[str]] = field(default_factory=list)
    app_state: str = "stable"
    uncommitted: set[str] = field(default_factory=set)
    more_groups: list[str] = field(default_factory=list)
    others: frozenset[str] | None = frozenset()
    asked_others: list[bool] = field(default_factory=list)
    groups_per_read: int = 1000
    members: int | KafkaOperationError | None = 3
    asked_members: list[list[str]] = field(default_factory=list)
    clock: Callable[[], float] = lambda: 0.0

    def topics(self) -> TopicListing:
        self._note("topics")
        return TopicListing("id", 1, dict(self.counts), self._errors(), {})

    def identify(
        self, topics: Sequence[str]
    ) -> tuple[dict[str, TopicIdentity], dict[str, ErrorKind]]:
        self.asked_ids.append(list(topics))
        self._note("ids")
        found = {topic: TopicIdentity(f"{self.generation}-{topic}", 1) for topic in topics}
        return found, self._errors()

    def topic_configs(self, topics: Sequence[str], *, defaults_of: Container[str]) -> ConfigReading:
        assert all(name in defaults_of for name in RETENTION)
        self._note("configs")
        entries = {
            **{
                name: ConfigEntry(value, True, "DEFAULT_CONFIG")
                for name, value in RETENTION.items()
            },
            "retention.ms": ConfigEntry("5", False, "DYNAMIC_TOPIC_CONFIG"),
            "segment.bytes": ConfigEntry("9", False, "DYNAMIC_TOPIC_CONFIG"),
            "secret": ConfigEntry(None, False, "DYNAMIC_TOPIC_CONFIG"),
        }
        if "retention" in self.denied:
            del entries["retention.bytes"]
        return ConfigReading(dict.fromkeys(topics, entries), self._errors())

    def groups(self, *, with_others: bool) -> GroupsReading:
        self._note("groups")
        self.asked_others.append(with_others)
        listings = [
            GroupListing("app", self.app_state, "classic"),
            GroupListing("old", "empty", "classic"),
            *(GroupListing(name, "empty", "classic") for name in self.more_groups),
        ]
        shown = tuple(each for each in listings if each.group not in self.hidden_groups)
        is_failed = with_others and self.others is None
        failed = (problem(ErrorKind.TIMEOUT, "groups"),) if is_failed else ()
        return GroupsReading(shown, (), self.others if with_others else None, failed)

    def group_offsets(
        self, groups: Iterable[str], *, within: float, timeout: float
    ) -> dict[str, GroupRead[GroupOffsets]]:
        assert (within, timeout) == (7.5, 10.0)
        self.asked_groups.append(list(groups))
        committed = {"app", *self.more_groups} - self.uncommitted
        return {
            group: GroupRead(
                self.clock(),
                self.group_problems.get(group) or ({ORDERS: 7} if group in committed else {}),
            )
            for group in list(groups)[: self.groups_per_read]
        }

    def group_members(
        self, groups: Iterable[str], *, within: float, timeout: float
    ) -> dict[str, GroupRead[int | None]]:
        assert (within, timeout) == (7.5, 10.0)
        self.asked_members.append(list(groups))
        return {group: GroupRead(self.clock(), self.members) for group in groups}

    def _note(self, what: str) -> None:
        self.asked.append(what)
        if what in self.down:
            raise problem(ErrorKind.TIMEOUT, what)

    def _errors(self) -> dict[str, ErrorKind]:
        return {"hidden": ErrorKind.AUTHORIZATION} if "hidden" in self.denied else {}

    def taken(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked


@dataclass
class Wanted:
    """All topics, and all groups except one; *checkpoints* are groups with a checkpoint."""

    topics: bool = True
    checkpoints: set[str] = field(default_factory=set)
    changes: int = 0

    def topics_changed(self, alias: str) -> None:
        assert alias == "us"
        self.changes += 1

    def topics_of(self, alias: str, existing: Iterable[str]) -> list[str]:
        assert alias == "us"
        return sorted(existing) if self.topics else []

    def groups_of(self, alias: str, existing: Iterable[str]) -> list[str]:
        assert alias == "us"
        return sorted({*existing, *self.checkpoints} - {"unwanted"})


class Reading:
    def __init__(self) -> None:
        self.now = 100.0
        self.clock_step = 0.0
        self.cluster = Cluster(clock=lambda: self.now)
        self.wanted = Wanted()
        self.cpu_per_call = self._cpu_seconds = 0.0
        self.health = CollectionHealth()
        self.reader = ClusterReader(
            cast("ClusterClient", self.cluster),
            ReadIntervals(topics=30.0, topic_configs=300.0, groups=15.0, members=300.0),
            self.wanted,
            self.health,
            clock=lambda: self.now + self.clock_step,
            timer=lambda: self.now,
            cpu_clock=self._cpu,
        )

    def _cpu(self) -> float:
        self._cpu_seconds += self.cpu_per_call
        return self._cpu_seconds

    def due(self, at: float) -> list[str]:
        self.now = at
        self.reader.read_due()
        return self.cluster.taken()


def test_first_read_fills_view() -> None:
    reading = Reading()
    assert reading.reader.view == ClusterView()
    reading.due(100.0)
    assert reading.reader.view == ClusterView(
        topics={"orders": 3},
        topic_ids={"orders": "id-orders"},
        topic_configs={"orders": {"retention.ms": "5", "segment.bytes": "9"}},
        retention_configs={"orders": RETENTION | {"retention.ms": "5"}},
        group_offsets={"app": {ORDERS: 7}},
        groups_read_at={"app": 100.0},
        groups_listed_at=100.0,
        groups_complete=True,
        group_states={"app": "stable", "old": "empty"},
        group_members={"app": 3, "old": 0},
        knows_uncarried_groups=True,
        topics_read_at=100.0,
        cluster_id="id",
    )


def test_stages_are_read_at_interval_after_clock_was_set_back() -> None:
    reading = Reading()
    reading.due(100.0)
    reading.due(130.0)
    expected = reading.due(160.0)
    reading.clock_step = -3600.0
    assert (reading.due(190.0), reading.due(190.5)) == (expected, [])


@pytest.mark.parametrize(
    ("state", "active"),
    [
        ("stable", True),
        ("completing_rebalancing", True),
        ("preparing_rebalancing", True),
        # Groups of KIP-848 have states that the client does not know: assigning, reconciling.
        ("unknown", True),
        ("reconciling", True),
        ("empty", False),
        ("dead", False),
    ],
)
def test_group_is_active_unless_it_has_no_members(state: str, *, active: bool) -> None:
    reading = Reading()
    reading.cluster.app_state = state
    reading.due(100.0)
    assert reading.reader.view.is_active("app") is active
    assert not reading.reader.view.is_active("gone")


class IdReading(Reading):
    """A cluster of three topics whose ids were read twice, before and after the settings."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster.counts = {"empty": 1, "moving": 1, "orders": 3}
        self.due(100.0)
        self.due(130.0)

    def ids_asked(self, at: float, **ends: tuple[int, int]) -> list[str]:
        """Topics whose ids are requested after these end offsets before and after a round."""
        before, after = (
            {TopicPartition(topic, 0): pair[side] for topic, pair in ends.items()}
            for side in (0, 1)
        )
        self.reader.movement.observe(before, after)
        self.cluster.asked_ids.clear()
        self.due(at)
        return self.cluster.asked_ids[-1]


def test_ids_are_read_again_of_topics_that_moved_or_are_empty() -> None:
    reading = IdReading()
    reading.cluster.generation = "new"
    ends = {"orders": (5, 5), "moving": (5, 6), "empty": (0, 0)}
    assert reading.ids_asked(160.0, **ends) == ["empty", "moving"]
    assert reading.reader.view.topic_ids == {
        "empty": "new-empty", "moving": "new-moving", "orders": "id-orders",
    }  # fmt: skip


def test_ids_of_all_topics_are_read_without_offsets_after_a_failure_and_with_the_settings() -> None:
    reading = IdReading()
    every = ["empty", "moving", "orders"]
    assert reading.ids_asked(160.0) == every
    reading.cluster.down = {"ids"}
    assert reading.ids_asked(190.0, orders=(5, 6)) == every
    reading.cluster.down = set()
    assert reading.ids_asked(195.0, orders=(6, 6)) == every
    assert reading.ids_asked(225.0, orders=(6, 6)) == ["empty", "moving"]
    reading.due(400.0)  # reads the settings
    assert reading.ids_asked(430.0, orders=(6, 6)) == every
    assert reading.ids_asked(460.0, orders=(6, 6)) == ["empty", "moving"]


def test_ids_of_added_and_deleted_topics_follow_the_list() -> None:
    reading = IdReading()
    reading.cluster.counts = {"orders": 3, "added": 1}
    assert reading.ids_asked(160.0, orders=(5, 5), added=(5, 5)) == ["added"]
    assert reading.reader.view.topic_ids == {"added": "id-added", "orders": "id-orders"}


def test_stages_are_read_at_their_own_intervals() -> None:
    reading = Reading()
    asked = {at: reading.due(at) for at in (100.0, 103.9, 104.0, 115.0, 130.0, 400.0)}
    assert asked == {
        100.0: ["topics", "ids", "groups", "configs"],
        103.9: [],
        104.0: ["topics"],
        115.0: ["topics", "groups"],
        130.0: ["topics", "ids", "groups"],
        400.0: ["topics", "ids", "groups", "configs"],
    }


def test_new_topics_are_reported_once_their_ids_are_read() -> None:
    reading = Reading()
    reading.due(100.0)
    reading.due(104.0)
    assert reading.wanted.changes == 1
    reading.cluster.counts["payments"] = 2
    assert reading.due(108.0) == ["topics", "ids", "configs"]
    assert reading.wanted.changes == 2
    assert reading.reader.view.topics == {"orders": 3, "payments": 2}
    assert set(reading.reader.view.topic_ids) == {"orders", "payments"}


def test_id_of_deleted_topic_is_forgotten_at_next_listing() -> None:
    reading = Reading()
    reading.due(100.0)
    reading.cluster.counts.clear()
    assert reading.due(104.0) == ["topics", "ids"]  # asks whether it is denied
    assert reading.reader.view.topic_ids == {}


@pytest.mark.parametrize(
    ("topics", "cpu", "longest", "interval"),
    [
        pytest.param(2000, 0.1, 30.0, 4.0, id="often"),
        pytest.param(2000, 0.1, 1.0, 1.0, id="as configured"),
        pytest.param(2001, 0.01, 30.0, 4.0, id="many, at little cost"),
        pytest.param(20_000, 0.4, 30.0, 26.0, id="2 % of a core"),
    ],
)
def test_topics_are_listed_at_most_for_two_percent_of_a_core(
    topics: int, cpu: float, longest: float, interval: float
) -> None:
    assert listing_interval(topics, cpu, longest) == pytest.approx(interval)


def test_listing_of_many_topics_is_repeated_by_its_measured_cost() -> None:
    reading = Reading()
    reading.cluster.counts = {f"topic-{number}": 1 for number in range(3000)}
    reading.wanted.topics = False
    reading.cpu_per_call = 0.1  # two calls per listing
    reading.due(100.0)
    assert reading.health.report().listing_intervals == {"us": pytest.approx(6.5)}
    listings = [at for at in range(101, 120) if "topics" in reading.due(float(at))]
    assert listings == [104, 111, 118]


def test_failed_stage_is_retried_soon_and_does_not_affect_others() -> None:
    reading = Reading()
    reading.cluster.down = {"ids", "configs"}
    assert reading.due(100.0) == ["topics", "ids", "groups", "configs"]
    assert reading.reader.view.group_offsets == {"app": {ORDERS: 7}}
    assert reading.due(104.9) == ["topics"]
    reading.cluster.down = set()
    assert reading.due(105.0) == ["ids", "configs"]
    assert reading.health.report().errors == {
        ("us", CollectionStage.TOPIC_IDS, "timeout"): 1,
        ("us", CollectionStage.TOPIC_CONFIGS, "timeout"): 1,
    }


def test_failed_topic_list_skips_other_stages() -> None:
    reading = Reading()
    reading.cluster.down = {"topics"}
    assert reading.due(100.0) == ["topics"]
    assert reading.reader.view == ClusterView()
    assert reading.health.failing_stages("us") == {CollectionStage.TOPICS: "timeout"}


def test_view_is_kept_while_stages_fail() -> None:
    reading = Reading()
    reading.due(100.0)
    held = reading.reader.view
    reading.cluster.down = {"topics", "ids", "groups", "configs"}
    reading.due(500.0)
    assert reading.reader.view == held


def test_newly_wanted_topics_are_read_at_once() -> None:
    reading = Reading()
    reading.wanted.topics = False
    reading.due(100.0)
    reading.wanted.topics = True
    assert reading.due(101.0) == ["ids", "configs"]
    reading.cluster.counts["pay"] = 1
    assert reading.due(130.0) == ["topics", "ids", "groups", "configs"]
    del reading.cluster.counts["orders"]
    # Requested once more by name: its authorization may have been revoked.
    assert reading.due(160.0) == ["topics", "ids", "ids", "groups"]
    assert reading.due(190.0) == ["topics", "ids", "groups"]


def test_topic_with_revoked_authorization_is_kept() -> None:
    reading = Reading()
    reading.cluster.counts["hidden"] = 2
    reading.due(100.0)
    del reading.cluster.counts["hidden"]
    reading.cluster.denied = {"hidden"}
    for at in (130.0, 160.0):
        reading.due(at)
        assert reading.reader.view.topics == {"orders": 3, "hidden": 2}
    failed = reading.health.report().errors
    # The fake cluster also reports the error in the listing; it counts once per round.
    assert failed["us", CollectionStage.TOPICS, "authorization"] == 2
    reading.cluster.denied = set()
    reading.due(190.0)
    assert reading.reader.view.topics == {"orders": 3}


def test_unreadable_group_keeps_its_offsets() -> None:
    reading = Reading()
    reading.due(100.0)
    reading.cluster.group_problems = {"app": problem(ErrorKind.AUTHORIZATION, "reading app")}
    reading.due(115.0)
    assert reading.reader.view.group_offsets == {"app": {ORDERS: 7}}
    assert reading.reader.view.groups_read_at == {"app": 100.0}
    assert reading.health.report().errors == {("us", CollectionStage.GROUPS, "authorization"): 1}


def test_group_with_revoked_authorization_keeps_its_offsets() -> None:
    reading = Reading()
    reading.due(100.0)
    reading.cluster.hidden_groups = {"app"}
    reading.cluster.group_problems = {"app": problem(ErrorKind.AUTHORIZATION, "reading app")}
    for at in (115.0, 130.0):
        reading.due(at)
        assert reading.reader.view.group_offsets == {"app": {ORDERS: 7}}
        assert reading.reader.view.unreadable_groups == {"app"}
    assert reading.health.report().errors == {("us", CollectionStage.GROUPS, "authorization"): 2}
    reading.cluster.hidden_groups, reading.cluster.group_problems = set(), {}
    reading.due(145.0)
    assert reading.reader.view.unreadable_groups == frozenset()
    assert reading.health.report().errors == {("us", CollectionStage.GROUPS, "authorization"): 2}


def test_unlisted_groups_with_checkpoint_are_read_again_only_while_denied() -> None:
    reading = Reading()
    reading.wanted.checkpoints = {"deleted", "denied", "unwanted"}
    reading.cluster.group_problems = {"denied": problem(ErrorKind.AUTHORIZATION, "reading denied")}
    for at in (100.0, 115.0):
        reading.due(at)
    assert reading.cluster.asked_groups == [
        ["app", "old", "deleted", "denied"],
        ["app", "old", "denied"],
    ]
    assert reading.reader.view.group_offsets == {"app": {ORDERS: 7}}
    assert reading.reader.view.unreadable_groups == {"denied"}
    assert reading.health.report().errors == {("us", CollectionStage.GROUPS, "authorization"): 2}


def test_unlisted_groups_with_checkpoint_are_read_in_several_rounds() -> None:
    reading = Reading()
    reading.wanted.checkpoints = {f"deleted-{number:03}" for number in range(150)}
    for at in (100.0, 115.0, 130.0):
        reading.due(at)
    assert list(map(len, reading.cluster.asked_groups)) == [2 + 100, 2 + 50, 2]


def test_unlisted_group_whose_checkpoint_is_removed_is_forgotten() -> None:
    reading = Reading()
    reading.wanted.checkpoints = {"deleted"}
    reading.due(100.0)
    reading.wanted.checkpoints = set()
    reading.due(115.0)
    assert reading.reader._groups._unlisted == set()


def test_deleted_group_is_read_once_more_and_dropped() -> None:
    reading = Reading()
    reading.due(100.0)
    reading.cluster.hidden_groups = {"app"}
    reading.cluster.uncommitted = {"app"}
    reading.due(115.0)
    assert reading.reader.view.group_offsets == {}
    assert reading.health.report().errors == {}


def test_group_that_is_readable_but_no_longer_listed_is_uncarried_within_one_listing() -> None:
    reading = Reading()
    reading.due(100.0)
    assert reading.reader.view.uncarried_groups == frozenset()
    reading.cluster.hidden_groups = {"app"}  # its application uses the Streams protocol now
    reading.due(115.0)
    view = reading.reader.view
    assert view.uncarried_groups == {"app"}
    assert view.group_offsets == {"app": {ORDERS: 7}}
    reading.cluster.down = {"groups"}
    reading.due(130.0)
    assert reading.reader.view.uncarried_groups == {"app"}
    reading.cluster.down = set()
    reading.cluster.uncommitted = {"app"}  # deleted
    reading.due(145.0)
    assert reading.reader.view.uncarried_groups == frozenset()


def test_groups_of_other_types_are_listed_every_30_seconds() -> None:
    reading = Reading()
    reading.cluster.others = frozenset({"streams", "share"})
    reading.cluster.more_groups = ["streams"]
    reading.cluster.hidden_groups = {"streams"}
    for at in (100.0, 115.0, 130.0):
        reading.due(at)
    assert reading.cluster.asked_others == [True, False, True]
    view = reading.reader.view
    assert view.uncarried_groups == {"streams", "share"}
    assert view.group_offsets["streams"] == {ORDERS: 7}
    assert view.knows_uncarried_groups


def test_failed_listing_of_other_types_is_unknown_and_fails_nothing_else() -> None:
    reading = Reading()
    reading.cluster.others = None
    reading.due(100.0)
    assert not reading.reader.view.knows_uncarried_groups
    assert reading.reader.view.group_states == {"app": "stable", "old": "empty"}
    reading.cluster.hidden_groups = {"app"}
    reading.due(115.0)
    assert reading.reader.view.uncarried_groups == {"app"}
    assert reading.health.report().errors == {("us", CollectionStage.GROUPS, "timeout"): 1}


def test_groups_of_far_cluster_are_read_in_turn_and_none_is_starved() -> None:
    reading = Reading()
    reading.cluster.more_groups = [f"far-{number:03}" for number in range(398)]
    reading.cluster.groups_per_read = 150
    found = []
    for at in (100.0, 100.5, 101.0, 115.9, 116.0):
        reading.due(at)
        view = reading.reader.view
        found.append((len(view.group_offsets), view.groups_complete))
    # One group has no commits.
    assert found == [(150, False), (300, False), (399, True), (399, True), (399, True)]
    assert list(map(len, reading.cluster.asked_groups)) == [400, 250, 100, 400]
    read_at = reading.reader.view.groups_read_at
    assert (read_at["app"], read_at["far-000"]) == (116.0, 116.0)
    assert (read_at["far-200"], read_at["far-397"]) == (100.5, 101.0)
    assert reading.health.report().errors == {}


def test_groups_whose_last_read_failed_are_read_last() -> None:
    reading = Reading()
    reading.cluster.more_groups = ["far-1", "far-2"]
    reading.cluster.group_problems = {"app": problem(ErrorKind.UNREACHABLE, "reading app")}
    reading.due(100.0)
    reading.due(115.0)
    assert reading.cluster.asked_groups == [
        ["app", "far-1", "far-2", "old"],
        ["far-1", "far-2", "old", "app"],
    ]


def test_members_are_read_slowly_and_at_once_when_the_state_changes() -> None:
    reading = Reading()
    for at in (100.0, 115.0, 399.0):
        reading.due(at)
    assert reading.cluster.asked_members == [["app"], [], []]
    reading.cluster.members = 2
    reading.cluster.app_state = "preparing_rebalancing"
    reading.due(414.0)
    assert reading.reader.view.group_members == {"app": 2, "old": 0}
    reading.cluster.app_state = "empty"
    reading.due(429.0)
    assert reading.reader.view.group_members == {"app": 0, "old": 0}
    assert reading.cluster.asked_members[3:] == [["app"], []]


@pytest.mark.parametrize("found", [None, problem(ErrorKind.TIMEOUT, "describing app")])
def test_unknown_members_are_absent(found: KafkaOperationError | None) -> None:
    reading = Reading()
    reading.cluster.members = found
    reading.due(100.0)
    assert reading.reader.view.group_members == {"old": 0}
    assert reading.health.report().errors == (
        {} if found is None else {("us", CollectionStage.GROUPS, "timeout"): 1}
    )


def test_incomplete_retention_settings_are_omitted() -> None:
    reading = Reading()
    reading.cluster.denied = {"retention"}
    reading.due(100.0)
    assert reading.reader.view.retention_configs == {}
    assert reading.reader.view.topic_configs == {
        "orders": {"retention.ms": "5", "segment.bytes": "9"}
    }


def test_unauthorized_topics_are_counted_each_time_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    reading = Reading()
    reading.cluster.denied = {"hidden"}
    for at in (100.0, 130.0, 160.0):
        reading.due(at)
    errors = reading.health.report().errors
    assert errors["us", CollectionStage.TOPICS, "authorization"] == 3
    assert errors["us", CollectionStage.TOPIC_IDS, "authorization"] == 3
    assert errors["us", CollectionStage.TOPIC_CONFIGS, "authorization"] == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"{what} 'hidden' on cluster us failed (authorization)"
        for what in ("listing topic", "describing topic", "reading the settings of topic")
    ]
    assert reading.health.failing_stages("us") == {}


def test_cluster_reader_reads_until_stopped() -> None:
    reading = Reading()
    reading.reader.start()
    reading.reader.stop()
    # It may be stopped between any two stages.
    asked = reading.cluster.asked
    assert asked == ["topics", "ids", "groups", "configs"][: len(asked)]
