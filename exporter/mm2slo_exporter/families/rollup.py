"""Figures of partitions and topics at the granularity asked for.

A figure that is not known (None) is left out, and out of every combination: a lag over several
partitions is that of the partitions whose lag is known, how many are not is told by
`mm2_lag_seconds_origin_partitions{origin="absent"}`. Sums of offsets are the exception (`whole`):
without one partition the sum would seem to go back. Flow level combines data topics alone.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from mm2slo_core.catalogue import Granularity, Metric, Rollup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mm2slo_exporter.families.view import FlowView, Series, SeriesOf
    from mm2slo_exporter.state.model import TopicState

_COMBINE: dict[Rollup, Callable[[Iterable[float]], float]] = {
    Rollup.SUM: sum,
    Rollup.MAX: max,
    Rollup.MIN: min,
}


def combined(
    metric: Metric, values: Iterable[float | None], *, whole: bool = False
) -> float | None:
    """One figure from several by the metric's rollup; None when none is known.

    With *whole*, None when any is not known.
    """
    every = list(values)
    known = [value for value in every if value is not None]
    if not known or (whole and len(known) < len(every)):
        return None
    return _COMBINE[_rollup_of(metric)](known)


def partition_series(
    metric: Metric,
    view: FlowView,
    granularity: Granularity,
    values: Sequence[float | None],
    *,
    whole: bool = False,
) -> list[Series]:
    """Series of a figure that partitions have; *values* stand in the order of the partitions."""
    if granularity is Granularity.PARTITION:
        return [
            (labels, value)
            for labels, value in zip(view.partition_labels, values, strict=True)
            if value is not None
        ]
    if granularity is Granularity.TOPIC:
        rolled = (
            (topic.labels.topic, combined(metric, values[topic.start : topic.stop], whole=whole))
            for topic in view.topics
        )
        return [(labels, value) for labels, value in rolled if value is not None]
    of_data = [
        value
        for topic in view.topics
        if topic.is_data
        for value in values[topic.start : topic.stop]
    ]
    return view.flow_series(combined(metric, of_data, whole=whole))


def by_partition(metric: Metric, attribute: str, *, whole: bool = False) -> SeriesOf:
    """Series of a field of PartitionState."""
    get = attrgetter(attribute)

    def series(view: FlowView, granularity: Granularity) -> list[Series]:
        values = list(map(get, view.partitions))
        return partition_series(metric, view, granularity, values, whole=whole)

    return series


def topic_series(
    metric: Metric, view: FlowView, granularity: Granularity, values: Sequence[float | None]
) -> list[Series]:
    """Series of a figure that topics have; *values* stand in the order of the topics.

    At flow level a sum over no data topic at all is 0: there is nothing that is not known.
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
    return view.flow_series(combined(metric, of_data))


def by_topic(metric: Metric, get: Callable[[TopicState], float | None]) -> SeriesOf:
    """Series of a figure of TopicState."""

    def series(view: FlowView, granularity: Granularity) -> list[Series]:
        values = [get(topic.state) for topic in view.topics]
        return topic_series(metric, view, granularity, values)

    return series


def _rollup_of(metric: Metric) -> Rollup:
    if metric.rollup is None:
        raise ValueError(
            f"{metric.name} declares no rollup: give it one in the catalogue, or publish it "
            "at its finest granularity only"
        )
    return metric.rollup
