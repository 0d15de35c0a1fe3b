"""Caches label values of partitions between cycles.

The renderer compares label tuples with those of the last cycle; identical objects compare fast.
"""

from __future__ import annotations

from typing import TypeAlias

Labels: TypeAlias = tuple[str, ...]


class TopicLabels:
    """The label values of one topic and of its partitions."""

    __slots__ = ("_extended", "numbers", "partitions", "topic")

    def __init__(self, flow: Labels, topic: str, numbers: list[int]) -> None:
        self.numbers = numbers
        self.topic: Labels = (*flow, topic)
        self.partitions: list[Labels] = [(*self.topic, str(number)) for number in numbers]
        self._extended: dict[str, list[Labels]] = {}

    def partitions_with(self, value: str) -> list[Labels]:
        """The partitions' label values, followed by *value*."""
        found = self._extended.get(value)
        if found is None:
            text = str(value)  # the plain text of a member of a StrEnum
            found = [(*labels, text) for labels in self.partitions]
            self._extended[value] = found
        return found


class LabelCache:
    """The label values of all published topics. Not thread-safe."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Labels, str], TopicLabels] = {}
        self._used: dict[tuple[Labels, str], TopicLabels] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def topic(self, flow: Labels, topic: str, numbers: list[int]) -> TopicLabels:
        """The label values of one topic; created again when its partitions change."""
        key = (flow, topic)
        found = self._kept.get(key)
        if found is None or found.numbers != numbers:
            found = TopicLabels(flow, topic, numbers)
            self._kept[key] = found
        self._used[key] = found
        return found

    def forget_unused(self) -> None:
        """Drop topics that were not requested since the last call."""
        self._kept, self._used = self._used, {}
