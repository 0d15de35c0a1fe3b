"""One flow's report as series: label values, granularity, state metrics, histograms.

Unknown values (None) are not published and not combined: the lag of several partitions is that of
the partitions with known lag; `mm2_lag_seconds_origin_partitions{origin="absent"}` counts the
others. Sums of offsets are the exception (`needs_all`): without one partition, the sum would go
back. Flow level combines data topics only, and counters by their growth (`flow_totals`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain, islice, zip_longest
from operator import attrgetter
from typing import NamedTuple, TypeAlias, TypeVar

from mm2slo_core.catalogue.metric import Granularity, Metric, Rollup
from mm2slo_core.topic_selection import TopicRole
from mm2slo_exporter.exposition_family import (
    Histogram,
    LabelColumns,
    SeriesColumns,
    SeriesList,
)
from mm2slo_exporter.state.flow_report import (
    FlowReport,
    GroupState,
    LatencyHistogram,
    PartitionState,
    TopicState,
)
from mm2slo_exporter.state.group_lag import GroupLag

Labels: TypeAlias = tuple[str, ...]
Series: TypeAlias = tuple[Labels, float | Histogram]
_Value = TypeVar("_Value")
_number = attrgetter("partition")


class TopicView(NamedTuple):
    """One topic."""

    state: TopicState
    labels: Labels
    is_data: bool
    """Whether the topic counts in flow totals; heartbeats and canaries do not."""


@dataclass(frozen=True)
class FlowSeriesView:
    """A flow's report with its topics, or some of them."""

    report: FlowReport
    labels: Labels
    topics: tuple[TopicView, ...]

    @classmethod
    def of(cls, report: FlowReport, before: FlowSeriesView | None = None) -> FlowSeriesView:
        """Build the view; topics of a flow that is not ready have offsets of the source only.

        Label values are the same objects as in the view *before*: the renderer compares them fast.
        """
        flow = report.flow
        labels = (flow.label, flow.source, flow.target)
        known = {topic.labels[-1]: topic.labels for topic in before.topics} if before else {}
        topics = tuple(
            TopicView(
                state,
                known.get(state.pair.source) or (*labels, state.pair.source),
                state.pair.role is TopicRole.DATA,
            )
            for state in report.topics
        )
        return cls(report, labels, topics)

    @cached_property
    def topic_labels(self) -> LabelColumns:
        """The label values of each topic."""
        return LabelColumns([topic.labels for topic in self.topics], [()] * len(self.topics))

    @cached_property
    def partitions(self) -> list[PartitionState]:
        """The partitions of all topics."""
        return list(chain.from_iterable(topic.state.partitions for topic in self.topics))

    @cached_property
    def partition_labels(self) -> LabelColumns:
        """The label values of each partition."""
        return LabelColumns(
            [topic.labels for topic in self.topics for _ in topic.state.partitions],
            list(map(partition_label, map(_number, self.partitions))),
        )

    def partition_labels_with(self, values: Iterable[str | None]) -> LabelColumns:
        """Those of each partition, followed by one of *values*."""
        last = map(partition_label, map(_number, self.partitions), values)
        return LabelColumns(self.partition_labels.first, list(last))

    def by_topic(self, values: Iterable[_Value]) -> Iterator[tuple[TopicView, list[_Value]]]:
        """Each topic with the values of its partitions; *values* are in the order of partitions."""
        remaining = iter(values)
        for topic in self.topics:
            yield topic, list(islice(remaining, len(topic.state.partitions)))

    def split(self, partitions: int) -> Iterator[FlowSeriesView]:
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


SeriesOf: TypeAlias = "Callable[[FlowSeriesView, Granularity], SeriesList]"

SeriesTable: TypeAlias = "Mapping[Metric, SeriesOf]"
"""The series of one flow, by metric."""


@lru_cache(maxsize=1 << 14)
def partition_label(number: int, *values: str | None) -> Labels:
    """The label values of a partition after those of its topic; the same object for all topics."""
    return (str(number), *map(str, values))  # the plain text of a member of a StrEnum


_COMBINE: dict[Rollup, Callable[[Iterable[float]], float]] = {
    Rollup.SUM: sum,
    Rollup.MAX: max,
    Rollup.MIN: min,
}


def combine(
    metric: Metric, values: Iterable[float | None], *, needs_all: bool = False
) -> float | None:
    """Combine values by the metric's rollup; None when none is known.

    With *needs_all*, None when any is unknown.
    """
    every = list(values)
    known = [value for value in every if value is not None]
    if not known or (needs_all and len(known) < len(every)):
        return None
    return _COMBINE[_rollup_of(metric)](known)


def partition_series(
    metric: Metric,
    view: FlowSeriesView,
    granularity: Granularity,
    values: Sequence[float | None],
    *,
    needs_all: bool = False,
) -> SeriesList:
    """Series of a value per partition; *values* are in the order of the partitions."""
    if granularity is Granularity.PARTITION:
        return known_series(view.partition_labels, values)
    if granularity is Granularity.TOPIC:
        combined = [combine(metric, each, needs_all=needs_all) for _, each in view.by_topic(values)]
        return known_series(view.topic_labels, combined)
    of_data = chain.from_iterable(each for topic, each in view.by_topic(values) if topic.is_data)
    return view.flow_series(combine(metric, of_data, needs_all=needs_all))


def known_series(labels: LabelColumns, values: Sequence[float | None]) -> SeriesColumns:
    """Series of the values that are known; *labels* are in their order."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        labels = labels.where([value is not None for value in values])
    return SeriesColumns(labels, known)


def by_partition(metric: Metric, attribute: str, *, needs_all: bool = False) -> SeriesOf:
    """Series of a field of PartitionState."""
    get = attrgetter(attribute)

    def series(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
        values = list(map(get, view.partitions))
        return partition_series(metric, view, granularity, values, needs_all=needs_all)

    return series


def topic_series(
    metric: Metric, view: FlowSeriesView, granularity: Granularity, values: Sequence[float | None]
) -> SeriesList:
    """Series of a value per topic; *values* are in the order of the topics.

    At flow level, the sum over no data topics is 0, not unknown.
    """
    if granularity >= Granularity.TOPIC:
        return known_series(view.topic_labels, values)
    of_data = [v for topic, v in zip(view.topics, values, strict=True) if topic.is_data]
    if not of_data and metric.rollup is Rollup.SUM:
        return view.flow_series(0)
    return view.flow_series(combine(metric, of_data))


def by_topic(metric: Metric, get: Callable[[TopicState], float | None]) -> SeriesOf:
    """Series of a value of TopicState."""

    def series(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
        values = [get(topic.state) for topic in view.topics]
        return topic_series(metric, view, granularity, values)

    return series


def by_counter(metric: Metric, attribute: str) -> SeriesOf:
    """Series of a counter, a field of both TopicState and FlowTotals."""
    get = attrgetter(attribute)
    of_topics = by_topic(metric, get)

    def series(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
        if granularity is Granularity.FLOW:
            return view.flow_series(get(view.report.totals))
        return of_topics(view, granularity)

    return series


def _rollup_of(metric: Metric) -> Rollup:
    if metric.rollup is None:
        raise ValueError(
            f"{metric.name} has no rollup; declare one in the catalogue, or publish the metric "
            "at its finest granularity only"
        )
    return metric.rollup


def one_hot(labels: Labels, states: Iterable[str], current: Iterable[str]) -> list[Series]:
    """One series per state; several states may be current.

    Current states that are not on the list are published too.
    """
    # As a state set of OpenMetrics 1.0: a state that has ended is 0. If its series ended instead,
    # that could also mean that the exporter is gone.
    active = {str(state) for state in current}
    known = [str(state) for state in states]
    listed = [*known, *sorted(active.difference(known))]
    return [((*labels, state), int(state in active)) for state in listed]


def count_by_kind(labels: Labels, kinds: Iterable[str], found: Iterable[str]) -> list[Series]:
    """The number of *found* per kind; each kind has a series."""
    counts = Counter(found)
    return [((*labels, str(kind)), counts[kind]) for kind in kinds]


def latency_series(labels: Labels, latency: LatencyHistogram | None) -> list[Series]:
    """The series of a latency histogram; none while the sum is negative.

    That happens when the sender's clock is ahead by more than the latency; OpenMetrics 1.0 does
    not allow negative sums.
    """
    if latency is None or latency.total_seconds < 0:
        return []
    return [(labels, Histogram.from_counts(latency.counts, latency.total_seconds))]
