"""The newest checkpoint of each consumer group, and the group's lag behind its commits.

Not published while the target is unreadable; the lag needs the source as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue import Granularity

if TYPE_CHECKING:
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable
    from mm2slo_exporter.families.label_cache import Labels


def _newest(view: FlowView) -> list[tuple[Labels, float]]:
    report = view.report
    return [
        ((*view.labels, group.group), group.checkpoint_at)
        for group in (view.groups() if report.target_readable else ())
        if group.checkpoint_at is not None
    ]


def _last_at(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [*_newest(view)]


def _age(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [(labels, view.report.at - at) for labels, at in _newest(view)]


def _lag(view: FlowView, granularity: Granularity) -> list[Series]:
    report = view.report
    if not (report.target_readable and report.source_readable):
        return []
    if granularity >= Granularity.TOPIC:
        return [
            ((*view.labels, group.group, topic), records)
            for group in view.groups()
            for topic, records in group.checkpoint_lag_by_topic.items()
        ]
    return [
        ((*view.labels, group.group), sum(group.checkpoint_lag_by_topic.values()))
        for group in view.groups()
        if group.checkpoint_lag_by_topic
    ]


SERIES: Final[SeriesTable] = {
    catalogue.CHECKPOINT_LAST_TIMESTAMP_SECONDS: _last_at,
    catalogue.CHECKPOINT_AGE_SECONDS: _age,
    catalogue.CHECKPOINT_LAG_RECORDS: _lag,
}
