"""Records appended and replicated; counters that do not increase while a cluster is unreadable."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_exporter.families.series_rollup import by_topic

if TYPE_CHECKING:
    from mm2slo_exporter.families.flow_view import SeriesTable

SERIES: Final[SeriesTable] = {
    catalogue.SOURCE_RECORDS_TOTAL: by_topic(
        catalogue.SOURCE_RECORDS_TOTAL, attrgetter("source_records_total")
    ),
    catalogue.REPLICATED_RECORDS_TOTAL: by_topic(
        catalogue.REPLICATED_RECORDS_TOTAL, attrgetter("replicated_records_total")
    ),
}
