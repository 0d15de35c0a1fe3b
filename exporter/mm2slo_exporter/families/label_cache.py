"""Caches label values of partitions between cycles.

The renderer compares label tuples with those of the last cycle; identical objects compare fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Labels: TypeAlias = tuple[str, ...]


class TopicLabels:
    """The label values of one topic and of its partitions, which are numbered from 0."""

    __slots__ = ("_by_value", "_partitions", "topic")

    def __init__(self, flow: Labels, topic: str) -> None:
        self.topic: Labels = (*flow, topic)
        self._partitions: list[Labels] = []
        self._by_value: dict[str, list[Labels]] = {}

    def partitions(self, count: int) -> list[Labels]:
        """The label values of *count* partitions."""
        known = self._partitions
        known += [(*self.topic, str(number)) for number in range(len(known), count)]
        return known[:count]

    def partition_with(self, number: int, value: str) -> Labels:
        """The label values of one partition, followed by *value*."""
        known = self._by_value.setdefault(value, [])
        while len(known) <= number:
            # The plain text of a member of a StrEnum.
            known.append((*self.topic, str(len(known)), str(value)))
        return known[number]


class LabelCache:
    """The label values of all published topics. Not thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[Labels, dict[str, TopicLabels]] = {}
        self._used: dict[Labels, dict[str, TopicLabels]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._kept.values()))

    def topics(self, flow: Labels, topics: Iterable[str]) -> Iterable[TopicLabels]:
        """The label values of a flow's *topics*, each once."""
        known = self._kept.get(flow, {})
        found = {topic: known.get(topic) or TopicLabels(flow, topic) for topic in topics}
        self._kept[flow] = self._used[flow] = found
        return found.values()

    def forget_unused(self) -> None:
        """Drop flows that were not requested since the last call."""
        self._kept, self._used = self._used, {}
