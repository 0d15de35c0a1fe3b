"""Failover readiness of each consumer group, and what would be missing on the target.

While the source is unreadable, they are based on its last reading, whose age is published. Not
published while the target is unreadable. Unknown bounds are not published; the reason is among the
reasons that block the group. Reasons that do not block it have no series: with hundreds of groups,
they would be most of all series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable
    from mm2slo_exporter.state.flow_report import GroupState


def _groups(view: FlowView) -> list[GroupState]:
    return view.groups() if view.report.target_readable else []


def _hidden(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(len(view.report.hidden_groups))


def _redelivery(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group, bound), records)
        for group in _groups(view)
        for bound, records in (
            ("lower", group.readiness.redelivery_lower),
            ("upper", group.readiness.redelivery_upper),
        )
        if records is not None
    ]


def _commits_age(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group), view.report.at - group.commits_at)
        for group in _groups(view)
        if group.commits_at is not None
    ]


def _unreplicated_records(view: FlowView, _granularity: Granularity) -> list[Series]:
    point = view.report.recovery_point
    return view.flow_series(None if point is None else point.unreplicated.records)


def _unreplicated_seconds(view: FlowView, _granularity: Granularity) -> list[Series]:
    point = view.report.recovery_point
    return view.flow_series(None if point is None else point.unreplicated.seconds)


def _unreplicated_age(view: FlowView, _granularity: Granularity) -> list[Series]:
    point = view.report.recovery_point
    return view.flow_series(None if point is None else view.report.at - point.read_at)


def _group_unreplicated_records(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group), group.unreplicated.records)
        for group in _groups(view)
        if group.unreplicated.records is not None
    ]


def _group_unreplicated_seconds(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group), group.unreplicated.seconds)
        for group in _groups(view)
        if group.unreplicated.seconds is not None
    ]


def _ready(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [((*view.labels, group.group), int(group.readiness.ready)) for group in _groups(view)]


def _blocked(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group, blocked.reason.value), 1)
        for group in _groups(view)
        for blocked in group.readiness.blocked
    ]


SERIES: Final[SeriesTable] = {
    catalogue.FAILOVER_REDELIVERY_RECORDS: _redelivery,
    catalogue.FAILOVER_COMMITS_AGE_SECONDS: _commits_age,
    catalogue.FAILOVER_UNREPLICATED_RECORDS: _unreplicated_records,
    catalogue.FAILOVER_UNREPLICATED_SECONDS: _unreplicated_seconds,
    catalogue.FAILOVER_UNREPLICATED_AGE_SECONDS: _unreplicated_age,
    catalogue.FAILOVER_GROUP_UNREPLICATED_RECORDS: _group_unreplicated_records,
    catalogue.FAILOVER_GROUP_UNREPLICATED_SECONDS: _group_unreplicated_seconds,
    catalogue.FAILOVER_READY: _ready,
    catalogue.FAILOVER_BLOCKED: _blocked,
    catalogue.EXPORTER_HIDDEN_GROUPS: _hidden,
}
