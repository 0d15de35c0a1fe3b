"""Label values of partitions, made once and kept from cycle to cycle.

The renderer compares label tuples with those of the last cycle; the same objects compare by
identity, so that unchanged series cost next to nothing.
"""

from __future__ import annotations

from typing import TypeAlias

Labels: TypeAlias = tuple[str, ...]


class TopicLabels:
    """The label values of one topic of a flow and of its partitions."""

    __slots__ = ("_extended", "numbers", "partitions", "topic")

    def __init__(self, flow: Labels, topic: str, numbers: list[int]) -> None:
        self.numbers = numbers
        self.topic: Labels = (*flow, topic)
        self.partitions: list[Labels] = [(*self.topic, str(number)) for number in numbers]
        self._extended: dict[str, list[Labels]] = {}

    def partitions_with(self, value: str) -> list[Labels]:
        """The partitions' labels, followed by one more label value."""
        found = self._extended.get(value)
        if found is None:
            text = str(value)  # the plain text of a member of a StrEnum
            found = [(*labels, text) for labels in self.partitions]
            self._extended[value] = found
        return found


class LabelCache:
    """The labels of every topic that is published; not for use by two threads at once."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Labels, str], TopicLabels] = {}
        self._used: dict[tuple[Labels, str], TopicLabels] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def topic(self, flow: Labels, topic: str, numbers: list[int]) -> TopicLabels:
        """The labels of one topic with these partitions; made anew when the partitions change."""
        key = (flow, topic)
        found = self._kept.get(key)
        if found is None or found.numbers != numbers:
            found = TopicLabels(flow, topic, numbers)
            self._kept[key] = found
        self._used[key] = found
        return found

    def forget_unused(self) -> None:
        """Drop every topic that was not asked for since the last call."""
        self._kept, self._used = self._used, {}
