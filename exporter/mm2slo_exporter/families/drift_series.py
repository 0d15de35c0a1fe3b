"""Drift between a source topic, its copy on the target, and MirrorMaker 2's assignments.

Series that need the target are not published while it is unreadable, and series that compare both
clusters while either is. Assignments are on the target. Counters are always published.
"""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue import Granularity
from mm2slo_exporter.families.series_rollup import by_counter, by_topic, topic_series

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesOf, SeriesTable
    from mm2slo_exporter.state.flow_report import TopicState


def _on_target(metric: catalogue.Metric, get: Callable[[TopicState], float | None]) -> SeriesOf:
    """A value that needs the target."""
    series = by_topic(metric, get)

    def readable(view: FlowView, granularity: Granularity) -> SeriesList:
        return series(view, granularity) if view.report.target_readable else []

    return readable


def _missing(topic: TopicState) -> int | None:
    return int(topic.missing_on_target) if topic.pair.target else None


def _partition_drift(view: FlowView, granularity: Granularity) -> SeriesList:
    if not _both_readable(view):
        return []
    values = [
        None if source is None or target is None else abs(source - target)
        for source, target in (
            (topic.state.source_partition_count, topic.state.target_partition_count)
            for topic in view.topics
        )
    ]
    return topic_series(catalogue.PARTITION_DRIFT, view, granularity, values)


def _config_drift(view: FlowView, granularity: Granularity) -> list[Series]:
    """At flow level, the number of data topics in which a setting differs."""
    if not _both_readable(view):
        return []
    if granularity >= Granularity.TOPIC:
        return [
            ((*topic.labels.topic, name), 1)
            for topic in view.topics
            for name in topic.state.config_drift
        ]
    topics = Counter(
        name for topic in view.topics if topic.is_data for name in topic.state.config_drift
    )
    return [((*view.labels, name), count) for name, count in sorted(topics.items())]


_RECREATIONS_BY_SIDE: Final = {
    side: by_counter(catalogue.TOPIC_RECREATIONS_TOTAL, f"{side}_recreations_total")
    for side in ("source", "target")
}


def _recreations(view: FlowView, granularity: Granularity) -> list[Series]:
    return [
        ((*labels, side), count)
        for side, series in _RECREATIONS_BY_SIDE.items()
        for labels, count in series(view, granularity)
    ]


def _both_readable(view: FlowView) -> bool:
    return view.report.source_readable and view.report.target_readable


SERIES: Final[SeriesTable] = {
    catalogue.TOPIC_MISSING: _on_target(catalogue.TOPIC_MISSING, _missing),
    catalogue.PARTITION_DRIFT: _partition_drift,
    catalogue.TOPIC_CONFIG_DRIFT: _config_drift,
    catalogue.ASSIGNED_MISSING_PARTITIONS: _on_target(
        catalogue.ASSIGNED_MISSING_PARTITIONS, attrgetter("assigned_missing")
    ),
    catalogue.UNASSIGNED_PARTITIONS: _on_target(
        catalogue.UNASSIGNED_PARTITIONS, attrgetter("unassigned")
    ),
    catalogue.SOURCE_TRUNCATIONS_TOTAL: by_counter(
        catalogue.SOURCE_TRUNCATIONS_TOTAL, "truncations_total"
    ),
    catalogue.TOPIC_RECREATIONS_TOTAL: _recreations,
}
