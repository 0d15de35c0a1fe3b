"""One flow's report with the label values of its series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mm2slo_core.topic_selection import TopicRole
from mm2slo_exporter.exposition import Histogram
from mm2slo_exporter.families.label_cache import LabelCache, Labels, TopicLabels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

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

_number = attrgetter("partition")


class TopicView(NamedTuple):
    """One topic; its partitions are `FlowView.partitions[start:stop]`."""

    state: TopicState
    labels: TopicLabels
    start: int
    stop: int

    @property
    def is_data(self) -> bool:
        """Whether the topic counts in flow totals; heartbeats and canaries do not."""
        return self.state.pair.role is TopicRole.DATA


@dataclass(frozen=True, slots=True)
class FlowView:
    """A flow's report with flat lists of its topics and partitions."""

    report: FlowReport
    labels: Labels
    topics: tuple[TopicView, ...]
    partitions: list[PartitionState]
    partition_labels: list[Labels]

    @classmethod
    def of(cls, report: FlowReport, cache: LabelCache) -> FlowView:
        """Build the view; topics of a flow that is not ready have offsets of the source only."""
        flow = report.flow
        labels = (flow.label, flow.source, flow.target)
        topics: list[TopicView] = []
        partitions: list[PartitionState] = []
        partition_labels: list[Labels] = []
        for state in report.topics:
            numbers = list(map(_number, state.partitions))
            topic_labels = cache.topic(labels, state.pair.source, numbers)
            start = len(partitions)
            partitions.extend(state.partitions)
            partition_labels.extend(topic_labels.partitions)
            topics.append(TopicView(state, topic_labels, start, len(partitions)))
        return cls(report, labels, tuple(topics), partitions, partition_labels)

    def split(self, partitions: int) -> Iterator[FlowView]:
        """Views of the topics in turn, each of about *partitions* partitions; none without any.

        Heartbeats and canaries, which always move, share no view with data topics.
        """
        first = 0
        for last, (topic, following) in enumerate(zip_longest(self.topics, self.topics[1:])):
            start = self.topics[first].start
            is_last = following is None or following.is_data != topic.is_data
            if is_last or topic.stop - start >= partitions:
                yield replace(
                    self,
                    topics=tuple(
                        TopicView(each.state, each.labels, each.start - start, each.stop - start)
                        for each in self.topics[first : last + 1]
                    ),
                    partitions=self.partitions[start : topic.stop],
                    partition_labels=self.partition_labels[start : topic.stop],
                )
                first = last + 1

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
