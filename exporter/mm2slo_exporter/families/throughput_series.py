"""Records appended and replicated; counters that do not increase while a cluster is unreadable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_exporter.families.series_rollup import by_counter

if TYPE_CHECKING:
    from mm2slo_exporter.families.flow_view import SeriesTable

SERIES: Final[SeriesTable] = {
    catalogue.SOURCE_RECORDS_TOTAL: by_counter(
        catalogue.SOURCE_RECORDS_TOTAL, "source_records_total"
    ),
    catalogue.REPLICATED_RECORDS_TOTAL: by_counter(
        catalogue.REPLICATED_RECORDS_TOTAL, "replicated_records_total"
    ),
}
