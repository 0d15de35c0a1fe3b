"""Records appended and replicated while watched.

Counters: they stand still, and stay, while a cluster cannot be read.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_exporter.families.rollup import by_topic

if TYPE_CHECKING:
    from mm2slo_exporter.families.view import SeriesTable

SERIES: Final[SeriesTable] = {
    catalogue.SOURCE_RECORDS_TOTAL: by_topic(
        catalogue.SOURCE_RECORDS_TOTAL, attrgetter("source_records_total")
    ),
    catalogue.REPLICATED_RECORDS_TOTAL: by_topic(
        catalogue.REPLICATED_RECORDS_TOTAL, attrgetter("replicated_records_total")
    ),
}
