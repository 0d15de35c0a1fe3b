"""How far replication is behind, in records and in seconds.

A lag compares the clusters and is left out while the source cannot be read (None in the report).
While the target cannot be read it is measured from the newest known position, so it grows: what
may have been copied meanwhile is not known to be. Where lags in seconds come from is always told,
`absent` included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.lag import LagOrigin
from mm2slo_exporter.families.one_hot import counted
from mm2slo_exporter.families.rollup import by_partition

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.view import FlowView, Series, SeriesTable


def _flow_records(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.lag_records)


def _flow_seconds(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.lag_seconds)


def _catch_up(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.catch_up_seconds)


def _origins(view: FlowView, _granularity: Granularity) -> list[Series]:
    origins = (partition.lag_origin for partition in view.data_partitions())
    return counted(view.labels, LagOrigin, origins)


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
