"""Series of topics and partitions: positions, lag, stalls, throughput, retention, offset syncs.

Offsets of an unreadable cluster are not published. Lag and headroom are not published while the
source is unreadable; while the target is, they are measured from the newest known position, which
is published with quality `stale`: lag grows, headroom is a lower bound. The origin of lag in
seconds is always published, including `absent`. A topic's sum of offsets needs all its partitions.
A partition has one series for its current quality: one per possible quality, for 10,000 partitions,
would take half the series limit. Headroom in seconds has one series per limit that would remove
records (`time`, `size`, `passed`); none without a limit, or with an unknown one. Unknown progress
is not published; a topic counts the stalled among its partitions with known progress. The time of
the last progress is published for partitions with a backlog, or an unknown one. Counters do not
increase while a cluster is unreadable. Between the sync of record u and the next offset n are
n - u - 1 records; a sync ahead of the position (source truncated or re-created) has no gap.
"""

from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.indicators.flow_state import PartitionProgress
from mm2slo_core.indicators.replication_lag import Headroom, LagOrigin, RetentionLimit
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_exporter.exposition_family import SeriesList
from mm2slo_exporter.families.series_view import (
    FlowSeriesView,
    Labels,
    Series,
    SeriesTable,
    by_counter,
    by_partition,
    by_topic,
    count_by_kind,
    known_series,
    partition_series,
)
from mm2slo_exporter.state.flow_report import PartitionState, TopicState

_quality_of = attrgetter("quality")


def _position_quality(view: FlowSeriesView, _granularity: Granularity) -> SeriesList:
    qualities = list(map(_quality_of, view.partitions))
    labels = view.partition_labels_with(qualities)
    return known_series(labels, [None if quality is None else 1 for quality in qualities])


def _partitions_by_quality(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    """Not published while the source is unreadable: zeros would wrongly mean no partitions."""
    if not view.report.source_readable:
        return []
    return count_by_kind(view.labels, PositionQuality, map(_quality_of, view.data_partitions()))


POSITION_SERIES: Final[SeriesTable] = {
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
    catalogue.POSITION_QUALITY: _position_quality,
}
_lag_origin = attrgetter("lag_origin")


def _flow_lag_records(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.lag_records)


def _flow_lag_seconds(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.lag_seconds)


def _catch_up(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.catch_up_seconds)


def _lag_origins(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return count_by_kind(view.labels, LagOrigin, map(_lag_origin, view.data_partitions()))


LAG_SERIES: Final[SeriesTable] = {
    catalogue.FLOW_LAG_RECORDS: _flow_lag_records,
    catalogue.FLOW_LAG_SECONDS: _flow_lag_seconds,
    catalogue.CATCHUP_ETA_SECONDS: _catch_up,
    catalogue.LAG_SECONDS_ORIGIN_PARTITIONS: _lag_origins,
    catalogue.REPLICATION_LAG_RECORDS: by_partition(
        catalogue.REPLICATION_LAG_RECORDS, "lag_records"
    ),
    catalogue.REPLICATION_LAG_SECONDS: by_partition(
        catalogue.REPLICATION_LAG_SECONDS, "lag_seconds"
    ),
    catalogue.OPEN_TRANSACTION_RECORDS: by_partition(
        catalogue.OPEN_TRANSACTION_RECORDS, "open_transaction_records"
    ),
}

_STALLED_BY_PROGRESS: Final[dict[PartitionProgress, int | None]] = {
    PartitionProgress.MOVING: 0,
    PartitionProgress.IDLE: 0,
    PartitionProgress.STALLED: 1,
    PartitionProgress.UNKNOWN: None,
}


def _stalled_partitions(topic: TopicState) -> int | None:
    known = [
        stalled
        for partition in topic.partitions
        if (stalled := _STALLED_BY_PROGRESS[partition.progress]) is not None
    ]
    return sum(known) if known else None


def _partition_stalled(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
    values = [_STALLED_BY_PROGRESS[partition.progress] for partition in view.partitions]
    return partition_series(catalogue.PARTITION_STALLED, view, granularity, values)


STALL_SERIES: Final[SeriesTable] = {
    catalogue.REPLICATION_PROGRESS_TIMESTAMP_SECONDS: by_partition(
        catalogue.REPLICATION_PROGRESS_TIMESTAMP_SECONDS, "progressed_at"
    ),
    catalogue.STALLED_PARTITIONS: by_topic(catalogue.STALLED_PARTITIONS, _stalled_partitions),
    catalogue.PARTITION_STALLED: _partition_stalled,
}

THROUGHPUT_SERIES: Final[SeriesTable] = {
    catalogue.SOURCE_RECORDS_TOTAL: by_counter(
        catalogue.SOURCE_RECORDS_TOTAL, "source_records_total"
    ),
    catalogue.REPLICATED_RECORDS_TOTAL: by_counter(
        catalogue.REPLICATED_RECORDS_TOTAL, "replicated_records_total"
    ),
}


_NO_HEADROOM: Final = Headroom(0, None, RetentionLimit.UNKNOWN)


def _headroom_records(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
    values = [room.records if (room := p.headroom) else None for p in view.partitions]
    return partition_series(catalogue.RETENTION_HEADROOM_RECORDS, view, granularity, values)


def _headroom_seconds(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
    if granularity is Granularity.PARTITION:
        rooms = [partition.headroom or _NO_HEADROOM for partition in view.partitions]
        labels = view.partition_labels_with([room.limit for room in rooms])
        return known_series(labels, [room.seconds for room in rooms])
    if granularity is Granularity.TOPIC:
        return [
            series
            for topic in view.topics
            for series in _least_headroom(topic.labels, topic.state.partitions)
        ]
    return _least_headroom(view.labels, view.data_partitions())


def _least_headroom(labels: Labels, partitions: Iterable[PartitionState]) -> list[Series]:
    """The smallest headroom by limit."""
    # By limit: the least of all would change its label, and thus its series, with the partition.
    by_limit: defaultdict[str, list[float]] = defaultdict(list)
    for partition in partitions:
        if (room := partition.headroom) and room.seconds is not None:
            by_limit[str(room.limit)].append(room.seconds)
    return [((*labels, limit), min(seconds)) for limit, seconds in sorted(by_limit.items())]


def _pending_losses(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    topics = (topic.state for topic in view.topics if topic.is_data)
    return view.flow_series(sum(state.pending_lost_records for state in topics))


RETENTION_SERIES: Final[SeriesTable] = {
    catalogue.RETENTION_HEADROOM_RECORDS: _headroom_records,
    catalogue.RETENTION_HEADROOM_SECONDS: _headroom_seconds,
    catalogue.RETENTION_LOST_RECORDS_TOTAL: by_counter(
        catalogue.RETENTION_LOST_RECORDS_TOTAL, "lost_records_total"
    ),
    catalogue.RETENTION_PENDING_LOST_RECORDS: _pending_losses,
}


def _sync_gap(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
    values = [_gap_records(p.next_offset, p.sync_upstream) for p in view.partitions]
    return partition_series(catalogue.OFFSET_SYNC_GAP_RECORDS, view, granularity, values)


def _gap_records(next_offset: int | None, upstream: int | None) -> int | None:
    # Not an error: MirrorSourceTask sends a sync only every `offset.lag.max` records, or where the
    # offsets of both sides do not advance alike. OffsetSyncStore translates the offset of a group
    # within the gap to the record after the sync.
    if next_offset is None or upstream is None or next_offset <= upstream:
        return None
    return next_offset - upstream - 1


OFFSET_SYNC_SERIES: Final[SeriesTable] = {
    catalogue.OFFSET_SYNC_LAST_TIMESTAMP_SECONDS: by_partition(
        catalogue.OFFSET_SYNC_LAST_TIMESTAMP_SECONDS, "sync_at"
    ),
    catalogue.OFFSET_SYNC_GAP_RECORDS: _sync_gap,
}
