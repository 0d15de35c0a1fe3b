"""Good, total and unknown events of each SLI.

Published from the start: a counter that first appears with its first event hides that event.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesOf, SeriesTable


def _events(attribute: str) -> SeriesOf:
    get = attrgetter(attribute)

    def series(view: FlowView, _granularity: Granularity) -> list[Series]:
        return [
            ((*view.labels, str(key.sli), key.tier), get(count))
            for key, count in view.report.slis.items()
        ]

    return series


SERIES: Final[SeriesTable] = {
    catalogue.SLI_GOOD_EVENTS_TOTAL: _events("good"),
    catalogue.SLI_EVENTS_TOTAL: _events("total"),
    catalogue.SLI_UNKNOWN_EVENTS_TOTAL: _events("unknown"),
}
