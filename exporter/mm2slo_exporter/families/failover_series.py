"""Failover readiness of each consumer group, and what would be missing on the target.

While the source is unreadable, they are based on its last reading, whose age is published. Not
published while the target is unreadable. Unknown bounds are not published; the reason is among the
reasons that block the group. Reasons that do not block it have no series: with hundreds of groups,
they would be most of all series.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_core.catalogue import Granularity
    from mm2slo_core.state_record import RecoveryPoint
    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesOf, SeriesTable
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


def _skipped(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group, bound), records)
        for group in _groups(view)
        if group.readiness.skipped[1]
        for bound, records in zip(("lower", "upper"), group.readiness.skipped, strict=True)
    ]


def _of_groups(get: Callable[[GroupState], float | None]) -> SeriesOf:
    """A value of each group of which it is known."""

    def series(view: FlowView, _granularity: Granularity) -> list[Series]:
        found = ((group.group, get(group)) for group in _groups(view))
        return [((*view.labels, name), value) for name, value in found if value is not None]

    return series


def _of_recovery_point(get: Callable[[RecoveryPoint, float], float | None]) -> SeriesOf:
    """A value of the recovery point at the time of the report."""

    def series(view: FlowView, _granularity: Granularity) -> list[Series]:
        point = view.report.recovery_point
        return view.flow_series(None if point is None else get(point, view.report.at))

    return series


def _commits_age(view: FlowView, granularity: Granularity) -> SeriesList:
    return _of_groups(
        lambda group: None if group.commits_at is None else view.report.at - group.commits_at
    )(view, granularity)


def _blocked(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group, blocked.reason.value), 1)
        for group in _groups(view)
        for blocked in group.readiness.blocked
    ]


def _unjudged(view: FlowView, _granularity: Granularity) -> list[Series]:
    found = view.report.unjudged_groups
    return [
        ((*view.labels, "excluded"), len(found.excluded)),
        ((*view.labels, "without_commits"), len(found.without_commits)),
    ]


def _types_known(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(int(view.report.unjudged_groups.all_types))


SERIES: Final[SeriesTable] = {
    catalogue.FAILOVER_REDELIVERY_RECORDS: _redelivery,
    catalogue.FAILOVER_SKIPPED_RECORDS: _skipped,
    catalogue.FAILOVER_COMMITS_AGE_SECONDS: _commits_age,
    catalogue.FAILOVER_UNREPLICATED_RECORDS: _of_recovery_point(lambda point, _at: point.records),
    catalogue.FAILOVER_UNREPLICATED_SECONDS: _of_recovery_point(lambda point, _at: point.seconds),
    catalogue.FAILOVER_UNREPLICATED_AGE_SECONDS: _of_recovery_point(
        lambda point, at: at - point.read_at
    ),
    catalogue.FAILOVER_GROUP_UNREPLICATED_RECORDS: _of_groups(attrgetter("unreplicated.records")),
    catalogue.FAILOVER_GROUP_UNREPLICATED_SECONDS: _of_groups(attrgetter("unreplicated.seconds")),
    catalogue.FAILOVER_READY: _of_groups(lambda group: int(group.readiness.ready)),
    catalogue.FAILOVER_BLOCKED: _blocked,
    catalogue.FAILOVER_UNJUDGED_GROUPS: _unjudged,
    catalogue.FAILOVER_GROUP_TYPES_KNOWN: _types_known,
    catalogue.EXPORTER_HIDDEN_GROUPS: _hidden,
}
OF_READY_FLOWS: Final = frozenset(
    {
        catalogue.EXPORTER_HIDDEN_GROUPS,
        catalogue.FAILOVER_UNJUDGED_GROUPS,
        catalogue.FAILOVER_GROUP_TYPES_KNOWN,
    }
)
