"""Stalled partitions, and when each partition last advanced.

Unknown progress is not published; a topic counts the stalled among its partitions with known
progress. The time of the last progress is published for partitions with a backlog, or an unknown
one: others are up to date.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.stall_watch import Progress
from mm2slo_exporter.families.series_rollup import by_partition, by_topic, partition_series

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import FlowView, SeriesTable
    from mm2slo_exporter.state.flow_report import TopicState

_STALLED: Final[dict[Progress, int | None]] = {
    Progress.MOVING: 0,
    Progress.IDLE: 0,
    Progress.STALLED: 1,
    Progress.UNKNOWN: None,
}


def _stalled_partitions(topic: TopicState) -> int | None:
    known = [
        stalled
        for partition in topic.partitions
        if (stalled := _STALLED[partition.progress]) is not None
    ]
    return sum(known) if known else None


def _partition_stalled(view: FlowView, granularity: Granularity) -> SeriesList:
    values = [_STALLED[partition.progress] for partition in view.partitions]
    return partition_series(catalogue.PARTITION_STALLED, view, granularity, values)


SERIES: Final[SeriesTable] = {
    catalogue.REPLICATION_PROGRESS_TIMESTAMP_SECONDS: by_partition(
        catalogue.REPLICATION_PROGRESS_TIMESTAMP_SECONDS, "progressed_at"
    ),
    catalogue.STALLED_PARTITIONS: by_topic(catalogue.STALLED_PARTITIONS, _stalled_partitions),
    catalogue.PARTITION_STALLED: _partition_stalled,
}
