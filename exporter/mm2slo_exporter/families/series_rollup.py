"""Values of partitions and topics at the requested granularity.

Unknown values (None) are not published and not combined: the lag of several partitions is that of
the partitions with known lag; `mm2_lag_seconds_origin_partitions{origin="absent"}` counts the
others. Sums of offsets are the exception (`needs_all`): without one partition, the sum would go
back. Flow level combines data topics only, and counters by their growth (`flow_totals`).
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from mm2slo_core.catalogue import Granularity, Metric, Rollup
from mm2slo_exporter.exposition import SeriesColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesOf
    from mm2slo_exporter.state.flow_report import TopicState

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
    view: FlowView,
    granularity: Granularity,
    values: Sequence[float | None],
    *,
    needs_all: bool = False,
) -> SeriesList:
    """Series of a value per partition; *values* are in the order of the partitions."""
    if granularity is Granularity.PARTITION:
        labels, known = view.partition_labels, [value for value in values if value is not None]
        if len(known) < len(values):
            found = zip(labels, values, strict=True)
            labels = [each for each, value in found if value is not None]
        return SeriesColumns(labels, known)
    if granularity is Granularity.TOPIC:
        rolled = (
            (
                topic.labels.topic,
                combine(metric, values[topic.start : topic.stop], needs_all=needs_all),
            )
            for topic in view.topics
        )
        return [(labels, value) for labels, value in rolled if value is not None]
    of_data = [
        value
        for topic in view.topics
        if topic.is_data
        for value in values[topic.start : topic.stop]
    ]
    return view.flow_series(combine(metric, of_data, needs_all=needs_all))


def by_partition(metric: Metric, attribute: str, *, needs_all: bool = False) -> SeriesOf:
    """Series of a field of PartitionState."""
    get = attrgetter(attribute)

    def series(view: FlowView, granularity: Granularity) -> SeriesList:
        values = list(map(get, view.partitions))
        return partition_series(metric, view, granularity, values, needs_all=needs_all)

    return series


def topic_series(
    metric: Metric, view: FlowView, granularity: Granularity, values: Sequence[float | None]
) -> list[Series]:
    """Series of a value per topic; *values* are in the order of the topics.

    At flow level, the sum over no data topics is 0, not unknown.
    """
    if granularity >= Granularity.TOPIC:
        return [
            (topic.labels.topic, value)
            for topic, value in zip(view.topics, values, strict=True)
            if value is not None
        ]
    of_data = [v for topic, v in zip(view.topics, values, strict=True) if topic.is_data]
    if not of_data and metric.rollup is Rollup.SUM:
        return view.flow_series(0)
    return view.flow_series(combine(metric, of_data))


def by_topic(metric: Metric, get: Callable[[TopicState], float | None]) -> SeriesOf:
    """Series of a value of TopicState."""

    def series(view: FlowView, granularity: Granularity) -> list[Series]:
        values = [get(topic.state) for topic in view.topics]
        return topic_series(metric, view, granularity, values)

    return series


def by_counter(metric: Metric, attribute: str) -> SeriesOf:
    """Series of a counter, a field of both TopicState and FlowTotals."""
    get = attrgetter(attribute)
    of_topics = by_topic(metric, get)

    def series(view: FlowView, granularity: Granularity) -> SeriesList:
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
