"""Replication lag in records and in seconds.

Not published while the source is unreadable. While the target is unreadable, lag is measured from
the newest known position, so it grows. The origin of lag in seconds is always published,
including `absent`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.replication_lag import LagOrigin
from mm2slo_exporter.families.one_hot import count_by_kind
from mm2slo_exporter.families.series_rollup import by_partition

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable

_origin = attrgetter("lag_origin")


def _flow_records(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.lag_records)


def _flow_seconds(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.lag_seconds)


def _catch_up(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.catch_up_seconds)


def _origins(view: FlowView, _granularity: Granularity) -> list[Series]:
    return count_by_kind(view.labels, LagOrigin, map(_origin, view.data_partitions()))


SERIES: Final[SeriesTable] = {
    catalogue.FLOW_LAG_RECORDS: _flow_records,
    catalogue.FLOW_LAG_SECONDS: _flow_seconds,
    catalogue.CATCHUP_ETA_SECONDS: _catch_up,
    catalogue.LAG_SECONDS_ORIGIN_PARTITIONS: _origins,
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
