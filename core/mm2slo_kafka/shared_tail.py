"""Topics that several followers read with one consumer.

A topic is read once for all its followers. It is read from its start again for one that follows it
later; the others skip what they have taken.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from mm2slo_kafka.tailed_topic import Batch, Restarted, RestartReason, TailedTopic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_kafka.tail_group import TailGroup
    from mm2slo_kafka.tailed_topic import Start


class Follower(Protocol):
    """Takes the records of a topic, in the polling thread."""

    @property
    def topic(self) -> str: ...

    @property
    def start(self) -> Start:
        """Where reading starts; the same for all followers of a topic."""

    def take(self, tailed: TailedTopic, batch: Batch) -> None:
        """Take a batch; it may contain records that were taken before."""


class TakenOffsets:
    """What one follower has taken of a topic."""

    def __init__(self) -> None:
        self._topic_id: str | None = None
        self._next: dict[int, int] = {}

    def clear(self) -> None:
        self._topic_id = None
        self._next.clear()

    def new_of(self, tailed: TailedTopic, batch: Batch) -> Batch:
        """*batch* without records taken before; restarted if the topic is another one."""
        restarted = batch.restarted
        if tailed.topic_id is not None and self._topic_id not in (None, tailed.topic_id):
            restarted = restarted or Restarted(RestartReason.RECREATED)
        if restarted is not None:
            self.clear()
        self._topic_id = tailed.topic_id or self._topic_id
        following = self._next
        records = [
            each for each in batch.records if each.offset >= following.get(each.partition, 0)
        ]
        following.update((each.partition, each.offset + 1) for each in records)
        return Batch(records, restarted, batch.problem)


F = TypeVar("F", bound=Follower)


class SharedTail(Generic[F]):
    """Followers may come and go in any thread; one thread opens and polls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followers: list[F] = []
        self._changed: set[str] = set()
        self._group: TailGroup | None = None
        self._tailed: dict[str, TailedTopic] = {}

    def follow(self, follower: F) -> None:
        """Read a topic for *follower*; does nothing if it is followed already."""
        with self._lock:
            if follower not in self._followers:
                self._followers.append(follower)
                self._changed.add(follower.topic)

    def unfollow(self, follower: F) -> None:
        with self._lock:
            if follower not in self._followers:
                return
            self._followers.remove(follower)
            if all(each.topic != follower.topic for each in self._followers):
                self._changed.add(follower.topic)

    def open(self, group: TailGroup) -> Sequence[F]:
        """Read all topics from their start, with *group*; returns the followers."""
        with self._lock:
            self._group, self._tailed = group, {}
            self._changed.update(each.topic for each in self._followers)
            return list(self._followers)

    def poll(self, max_records: int, timeout: float) -> Sequence[tuple[F, TailedTopic]]:
        """Pass records to the followers; returns those whose topic has records or was looked up.

        Waits up to *timeout* seconds for the first record.
        """
        group = self._group
        if group is None:
            raise RuntimeError("not opened")
        with self._lock:
            followers = list(self._followers)
            changed, self._changed = self._changed, set()
        starts = {each.topic: each.start for each in followers}
        for topic in changed:
            if self._tailed.pop(topic, None) is not None:
                group.remove(topic)
            if topic in starts:
                self._tailed[topic] = TailedTopic(topic, start=starts[topic])
                group.add(self._tailed[topic])
        batches = group.poll(max_records, timeout)
        touched = [(each, self._tailed[each.topic]) for each in followers if each.topic in batches]
        for follower, tailed in touched:
            follower.take(tailed, batches[follower.topic])
        return touched
