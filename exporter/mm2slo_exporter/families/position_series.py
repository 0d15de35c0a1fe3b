"""Offsets on both clusters and the replicated position.

Offsets of an unreadable cluster are not published. While the target is unreadable, the replicated
position is published with quality `stale`. A topic's sum needs all of its partitions.

A partition has one series for its current quality: one per possible quality, for 10,000
partitions, would take half the series limit.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.flow_offsets import PositionQuality
from mm2slo_exporter.exposition import SeriesColumns
from mm2slo_exporter.families.one_hot import count_by_kind
from mm2slo_exporter.families.series_rollup import by_partition

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable

_quality_of = attrgetter("quality")


def _quality(view: FlowView, _granularity: Granularity) -> SeriesList:
    labels = [
        topic.labels.partition_with(partition.partition, partition.quality)
        for topic in view.topics
        for partition in topic.state.partitions
        if partition.quality is not None
    ]
    return SeriesColumns(labels, [1] * len(labels))


def _partitions_by_quality(view: FlowView, _granularity: Granularity) -> list[Series]:
    """Not published while the source is unreadable: zeros would wrongly mean no partitions."""
    if not view.report.source_readable:
        return []
    return count_by_kind(view.labels, PositionQuality, map(_quality_of, view.data_partitions()))


SERIES: Final[SeriesTable] = {
    catalogue.REPLICATED_PARTITIONS: _partitions_by_quality,
    catalogue.SOURCE_END_OFFSET: by_partition(
        catalogue.SOURCE_END_OFFSET, "source_end", needs_all=True
    ),
    catalogue.SOURCE_START_OFFSET: by_partition(
        catalogue.SOURCE_START_OFFSET, "source_start", needs_all=True
    ),
    catalogue.TARGET_END_OFFSET: by_partition(
        catalogue.TARGET_END_OFFSET, "target_end", needs_all=True
    ),
    catalogue.TARGET_START_OFFSET: by_partition(
        catalogue.TARGET_START_OFFSET, "target_start", needs_all=True
    ),
    catalogue.REPLICATED_SOURCE_OFFSET: by_partition(
        catalogue.REPLICATED_SOURCE_OFFSET, "next_offset", needs_all=True
    ),
    catalogue.POSITION_QUALITY: _quality,
}
