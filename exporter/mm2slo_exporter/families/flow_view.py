"""One flow's report with the label values of its series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from mm2slo_core.topic_selection import TopicRole
from mm2slo_exporter.exposition import Histogram
from mm2slo_exporter.families.label_cache import LabelCache, Labels, TopicLabels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from mm2slo_core.catalogue import Granularity, Metric
    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.state.flow_report import (
        FlowReport,
        GroupState,
        PartitionState,
        TopicState,
    )
    from mm2slo_exporter.state.group_lag import GroupLag

Series: TypeAlias = tuple[Labels, float | Histogram]
_Value = TypeVar("_Value")


class TopicView(NamedTuple):
    """One topic."""

    state: TopicState
    labels: TopicLabels
    is_data: bool
    """Whether the topic counts in flow totals; heartbeats and canaries do not."""


@dataclass(frozen=True)
class FlowView:
    """A flow's report with its topics, or some of them."""

    report: FlowReport
    labels: Labels
    topics: tuple[TopicView, ...]

    @classmethod
    def of(cls, report: FlowReport, cache: LabelCache) -> FlowView:
        """Build the view; topics of a flow that is not ready have offsets of the source only."""
        flow = report.flow
        labels = (flow.label, flow.source, flow.target)
        topic_labels = cache.topics(labels, [state.pair.source for state in report.topics])
        topics = tuple(
            TopicView(state, each, state.pair.role is TopicRole.DATA)
            for state, each in zip(report.topics, topic_labels, strict=True)
        )
        return cls(report, labels, topics)

    @cached_property
    def topic_labels(self) -> list[Labels]:
        """The label values of each topic."""
        return [topic.labels.topic for topic in self.topics]

    @cached_property
    def partitions(self) -> list[PartitionState]:
        """The partitions of all topics."""
        return list(chain.from_iterable(topic.state.partitions for topic in self.topics))

    @cached_property
    def partition_labels(self) -> list[Labels]:
        """The label values of each partition."""
        return list(
            chain.from_iterable(
                topic.labels.partitions(len(topic.state.partitions)) for topic in self.topics
            )
        )

    def by_topic(self, values: Iterable[_Value]) -> Iterator[tuple[TopicView, list[_Value]]]:
        """Each topic with the values of its partitions; *values* are in the order of partitions."""
        remaining = iter(values)
        for topic in self.topics:
            yield topic, list(islice(remaining, len(topic.state.partitions)))

    def split(self, partitions: int) -> Iterator[FlowView]:
        """Views of the topics in turn, each of about *partitions* partitions; none without any.

        Heartbeats and canaries, which always move, share no view with data topics.
        """
        found: list[TopicView] = []
        size = 0
        for topic, following in zip_longest(self.topics, self.topics[1:]):
            found.append(topic)
            size += len(topic.state.partitions)
            if following is None or following.is_data != topic.is_data or size >= partitions:
                yield replace(self, topics=tuple(found))
                found, size = [], 0

    def data_partitions(self) -> list[PartitionState]:
        """The partitions that count in flow totals."""
        return [
            partition
            for topic in self.topics
            if topic.is_data
            for partition in topic.state.partitions
        ]

    def groups(self) -> list[GroupState]:
        """The groups with series of their own."""
        hidden = self.report.hidden_groups
        return [group for group in self.report.groups if group.group not in hidden]

    def group_lags(self) -> list[GroupLag]:
        """The groups of both clusters with series of their own."""
        hidden = self.report.hidden_groups
        return [group for group in self.report.group_lags if group.group not in hidden]

    def flow_series(self, value: float | None) -> list[Series]:
        """The series of a flow-level metric; none when the value is unknown."""
        return [] if value is None else [(self.labels, value)]


SeriesOf: TypeAlias = "Callable[[FlowView, Granularity], SeriesList]"
SeriesTable: TypeAlias = "Mapping[Metric, SeriesOf]"
"""The series of one flow, by metric."""
