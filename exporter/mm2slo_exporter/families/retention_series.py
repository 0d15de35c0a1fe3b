"""Retention headroom, and records lost to retention.

Headroom is not published while the source is unreadable. While the target is unreadable, it is
measured from the newest known position and is thus a lower bound. In seconds, it has one series
per limit that would remove records (`time`, `size`, `passed`); none for a partition without a
limit, or with an unknown one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue import Granularity
from mm2slo_exporter.families.series_rollup import by_counter, known_series, partition_series

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable
    from mm2slo_exporter.families.label_cache import Labels
    from mm2slo_exporter.state.flow_report import PartitionState


def _records(view: FlowView, granularity: Granularity) -> SeriesList:
    values = [room.records if (room := p.headroom) else None for p in view.partitions]
    return partition_series(catalogue.RETENTION_HEADROOM_RECORDS, view, granularity, values)


def _seconds(view: FlowView, granularity: Granularity) -> SeriesList:
    if granularity is Granularity.PARTITION:
        rooms = [
            (topic.labels.partition_with(partition.partition, room.limit), room.seconds)
            for topic in view.topics
            for partition in topic.state.partitions
            if (room := partition.headroom)
        ]
        return known_series([labels for labels, _ in rooms], [seconds for _, seconds in rooms])
    if granularity is Granularity.TOPIC:
        return [
            series
            for topic in view.topics
            for series in _least(topic.labels.topic, topic.state.partitions)
        ]
    return _least(view.labels, view.data_partitions())


def _least(labels: Labels, partitions: Iterable[PartitionState]) -> list[Series]:
    """The smallest headroom by limit."""
    by_limit: defaultdict[str, list[float]] = defaultdict(list)
    for partition in partitions:
        if (room := partition.headroom) and room.seconds is not None:
            by_limit[str(room.limit)].append(room.seconds)
    return [((*labels, limit), min(seconds)) for limit, seconds in sorted(by_limit.items())]


def _pending(view: FlowView, _granularity: Granularity) -> list[Series]:
    topics = (topic.state for topic in view.topics if topic.is_data)
    return view.flow_series(sum(state.pending_lost_records for state in topics))


SERIES: Final[SeriesTable] = {
    catalogue.RETENTION_HEADROOM_RECORDS: _records,
    catalogue.RETENTION_HEADROOM_SECONDS: _seconds,
    catalogue.RETENTION_LOST_RECORDS_TOTAL: by_counter(
        catalogue.RETENTION_LOST_RECORDS_TOTAL, "lost_records_total"
    ),
    catalogue.RETENTION_PENDING_LOST_RECORDS: _pending,
}
