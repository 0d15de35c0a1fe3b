"""Offsets on both clusters and the replicated position between them.

Offsets of a cluster that cannot be read are None in the report and left out; those of the other
cluster stay. The replicated position stays while the target cannot be read: what is copied stays
copied, and its quality says `stale`. A topic's sum needs every one of its partitions.

The quality of a partition is one series, the quality in force: nine for each of 10,000
partitions would take half the series limit to say the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.offsets import PositionQuality
from mm2slo_exporter.families.one_hot import counted
from mm2slo_exporter.families.rollup import by_partition

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.view import FlowView, Series, SeriesTable


def _quality(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        (topic.labels.partitions_with(partition.quality)[index], 1)
        for topic in view.topics
        for index, partition in enumerate(view.partitions[topic.start : topic.stop])
        if partition.quality is not None
    ]


def _partitions_by_quality(view: FlowView, _granularity: Granularity) -> list[Series]:
    """Nothing at all where no partition's quality is known: zeros would say there is none."""
    if not view.report.source_readable:
        return []
    qualities = (
        partition.quality for partition in view.data_partitions() if partition.quality is not None
    )
    return counted(view.labels, PositionQuality, qualities)


SERIES: Final[SeriesTable] = {
    catalogue.REPLICATED_PARTITIONS: _partitions_by_quality,
    catalogue.SOURCE_END_OFFSET: by_partition(
        catalogue.SOURCE_END_OFFSET, "source_end", whole=True
    ),
    catalogue.SOURCE_START_OFFSET: by_partition(
        catalogue.SOURCE_START_OFFSET, "source_start", whole=True
    ),
    catalogue.TARGET_END_OFFSET: by_partition(
        catalogue.TARGET_END_OFFSET, "target_end", whole=True
    ),
    catalogue.TARGET_START_OFFSET: by_partition(
        catalogue.TARGET_START_OFFSET, "target_start", whole=True
    ),
    catalogue.REPLICATED_SOURCE_OFFSET: by_partition(
        catalogue.REPLICATED_SOURCE_OFFSET, "next_offset", whole=True
    ),
    catalogue.POSITION_QUALITY: _quality,
}
