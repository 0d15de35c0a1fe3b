"""Which number a replica leases, by the consumer groups that exist."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from mm2slo_kafka import leadership
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import GroupListing, GroupsReading
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.leadership import LeasedSlot

DENIED = KafkaOperationError(
    ErrorKind.AUTHORIZATION, cluster="us", operation="listing", detail="no"
)


@dataclass
class Cluster:
    """A cluster with a topic, members of groups, and answers that fail first."""

    members: dict[str, str] = field(default_factory=dict)
    failures: list[KafkaOperationError] = field(default_factory=list)
    asked: int = 0
    on_ask: Callable[[int], object] = lambda _count: None
    handles: object = None

    def prepare(self, _stopping: threading.Event) -> None:
        if self.failures:
            raise self.failures.pop()

    def groups(self, _timeout: float) -> GroupsReading:
        self.asked += 1
        self.on_ask(self.asked)
        listed = (GroupListing(group, state, "classic") for group, state in self.members.items())
        return GroupsReading(tuple(listed), ())


@dataclass
class Election:
    """A membership that ends at once; the test decides whether it led."""

    led: list[bool]
    joined: list[str]
    stopping: threading.Event
    seen: list[int | None]
    slot: list[LeasedSlot]
    leading: bool = False

    def run(self, _stopping: threading.Event) -> None:
        self.leading = self.led.pop(0)
        self.seen.append(self.slot[0].number)
        self.leading = False
        if not self.led:
            self.stopping.set()


def lease(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, *led: bool, patience: float = 0.0
) -> tuple[list[str], list[int | None], list[KafkaOperationError]]:
    """Run until the last of *led*: the groups joined, the numbers held in each, the problems."""
    joined: list[str] = []
    seen: list[int | None] = []
    problems: list[KafkaOperationError] = []
    stopping = threading.Event()
    slots: list[LeasedSlot] = []

    def election(_handles: object, *, group: str, **_options: Any) -> Election:
        joined.append(group)
        return Election(pending, joined, stopping, seen, slots)

    pending = list(led)
    monkeypatch.setattr(leadership, "Leadership", election)
    monkeypatch.setattr(leadership, "_RETRY_SECONDS", 0.01)
    slots.append(
        LeasedSlot(
            cast("ClusterClient", cluster),
            prefix="p",
            topic="heartbeats",
            prepare=cluster.prepare,
            patience_seconds=patience,
            on_problem=problems.append,
        )
    )
    slots[0].run(stopping)
    assert slots[0].number is None
    return joined, seen, problems


def test_first_replica_leases_number_zero_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lease(Cluster(), monkeypatch, True, patience=1e9) == (["p.0"], [0], [])


@pytest.mark.parametrize("state", ["empty", "dead"])
def test_group_without_members_is_free(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster({"p.0": "stable", "p.1": state, "p.2": "stable"})
    assert lease(cluster, monkeypatch, True) == (["p.1"], [1], [])


@pytest.mark.parametrize("state", ["stable", "preparing_rebalance", "unknown"])
def test_group_with_members_is_taken(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lease(Cluster({"p.0": state}), monkeypatch, True) == (["p.1"], [1], [])


def test_number_of_dead_predecessor_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker keeps a member that was killed until its session times out."""
    cluster = Cluster({"p.0": "stable"})
    cluster.on_ask = lambda count: cluster.members.update({"p.0": "empty"} if count == 5 else {})
    assert lease(cluster, monkeypatch, True, patience=1e9) == (["p.0"], [0], [])
    assert cluster.asked == 5


def test_replica_that_does_not_lead_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one joined the same group at the same time."""
    cluster = Cluster()
    cluster.on_ask = lambda count: cluster.members.update({"p.0": "stable"} if count == 2 else {})
    assert lease(cluster, monkeypatch, False, True) == (["p.0", "p.1"], [None, 1], [])


def test_problems_are_reported_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(failures=[DENIED])
    assert lease(cluster, monkeypatch, True) == (["p.0"], [0], [DENIED])
    assert cluster.asked == 1
