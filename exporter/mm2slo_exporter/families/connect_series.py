"""States of connectors and tasks, from Connect's status topic on the target.

Not published while the target is unreadable. Label values are Connect's names in lower case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.records.connect_status import ConnectState
from mm2slo_exporter.families.one_hot import one_hot

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable

_STATES: Final = tuple(state.value.lower() for state in ConnectState)


def _connectors(view: FlowView, _granularity: Granularity) -> list[Series]:
    if not view.report.target_readable:
        return []
    return [
        series
        for found in view.report.tasks
        if found.task is None
        for series in one_hot((*view.labels, found.connector), _STATES, (found.state.lower(),))
    ]


def _tasks(view: FlowView, _granularity: Granularity) -> list[Series]:
    if not view.report.target_readable:
        return []
    return [
        series
        for found in view.report.tasks
        if found.task is not None
        for series in one_hot(
            (*view.labels, found.connector, str(found.task)), _STATES, (found.state.lower(),)
        )
    ]


SERIES: Final[SeriesTable] = {
    catalogue.CONNECTOR_STATE: _connectors,
    catalogue.TASK_STATE: _tasks,
}
