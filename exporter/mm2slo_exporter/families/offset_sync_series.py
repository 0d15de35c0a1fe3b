"""Time of the newest offset sync of each partition, and its gap to the position.

Between the sync of record u and the next offset n are n - u - 1 records; a sync ahead of the
position (source truncated or re-created) has no gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_exporter.families.series_rollup import by_partition, partition_series

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import FlowView, SeriesTable


def _gap(view: FlowView, granularity: Granularity) -> SeriesList:
    values = [_gap_records(p.next_offset, p.sync_upstream) for p in view.partitions]
    return partition_series(catalogue.OFFSET_SYNC_GAP_RECORDS, view, granularity, values)


def _gap_records(next_offset: int | None, upstream: int | None) -> int | None:
    if next_offset is None or upstream is None or next_offset <= upstream:
        return None
    return next_offset - upstream - 1


SERIES: Final[SeriesTable] = {
    catalogue.OFFSET_SYNC_LAST_TIMESTAMP_SECONDS: by_partition(
        catalogue.OFFSET_SYNC_LAST_TIMESTAMP_SECONDS, "sync_at"
    ),
    catalogue.OFFSET_SYNC_GAP_RECORDS: _gap,
}
