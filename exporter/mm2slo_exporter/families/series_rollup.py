"""Values of partitions and topics at the requested granularity.

Unknown values (None) are not published and not combined: the lag of several partitions is that of
the partitions with known lag; `mm2_lag_seconds_origin_partitions{origin="absent"}` counts the
others. Sums of offsets are the exception (`needs_all`): without one partition, the sum would go
back. Flow level combines data topics only, and counters by their growth (`flow_totals`).
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING

from mm2slo_core.catalogue import Granularity, Metric, Rollup
from mm2slo_exporter.exposition import SeriesColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import FlowView, SeriesOf
    from mm2slo_exporter.families.label_cache import Labels
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
        return known_series(view.partition_labels, values)
    if granularity is Granularity.TOPIC:
        combined = [combine(metric, each, needs_all=needs_all) for _, each in view.by_topic(values)]
        return known_series(view.topic_labels, combined)
    of_data = chain.from_iterable(each for topic, each in view.by_topic(values) if topic.is_data)
    return view.flow_series(combine(metric, of_data, needs_all=needs_all))


def known_series(labels: list[Labels], values: Sequence[float | None]) -> SeriesColumns:
    """Series of the values that are known; *labels* are in their order."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        found = zip(labels, values, strict=True)
        labels = [each for each, value in found if value is not None]
    return SeriesColumns(labels, known)


def by_partition(metric: Metric, attribute: str, *, needs_all: bool = False) -> SeriesOf:
    """Series of a field of PartitionState."""
    get = attrgetter(attribute)

    def series(view: FlowView, granularity: Granularity) -> SeriesList:
        values = list(map(get, view.partitions))
        return partition_series(metric, view, granularity, values, needs_all=needs_all)

    return series


def topic_series(
    metric: Metric, view: FlowView, granularity: Granularity, values: Sequence[float | None]
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

    def series(view: FlowView, granularity: Granularity) -> SeriesList:
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
