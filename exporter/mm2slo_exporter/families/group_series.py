"""Series of consumer groups: lag, state, checkpoints, failover readiness; the recovery point.

Lag, state and members are absent for an unreadable cluster; checkpoints while the target is
unreadable, and their lag while the source is. Readiness is not published while the target is
unreadable; while the source is, it is based on its last reading, whose age is published. Unknown
bounds are not published; the reason is among the reasons that block the group. Reasons that do not
block it have no series: with hundreds of groups, they would be most of all series.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity
from mm2slo_core.state_record import RecoveryPoint
from mm2slo_exporter.exposition_family import SeriesList
from mm2slo_exporter.families.series_view import (
    FlowSeriesView,
    Labels,
    Series,
    SeriesOf,
    SeriesTable,
)
from mm2slo_exporter.state.flow_report import GroupState
from mm2slo_exporter.state.group_lag import GroupLag, LagSum, sum_lags


def _groups_with_lag(view: FlowSeriesView) -> Iterator[tuple[Labels, GroupLag]]:
    for group in view.group_lags():
        yield (*view.labels, group.cluster, group.group), group


def _unread_lag(view: FlowSeriesView, granularity: Granularity) -> Iterator[tuple[Labels, LagSum]]:
    for labels, group in _groups_with_lag(view):
        if granularity >= Granularity.TOPIC:
            for topic, unread in group.by_topic.items():
                yield (*labels, topic), unread
        else:
            yield labels, sum_lags(group.by_topic.values())


def _group_lag_records(view: FlowSeriesView, granularity: Granularity) -> list[Series]:
    unread = _unread_lag(view, granularity)
    return [(labels, each.records) for labels, each in unread if each.records is not None]


def _group_lag_seconds(view: FlowSeriesView, granularity: Granularity) -> list[Series]:
    unread = _unread_lag(view, granularity)
    return [(labels, each.seconds) for labels, each in unread if each.seconds is not None]


def _group_state(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [
        ((*labels, each.state), 1)
        for labels, each in _groups_with_lag(view)
        if each.state is not None
    ]


def _group_members(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [
        (labels, each.members)
        for labels, each in _groups_with_lag(view)
        if each.members is not None
    ]


GROUP_LAG_SERIES: Final[SeriesTable] = {
    catalogue.GROUP_LAG_RECORDS: _group_lag_records,
    catalogue.GROUP_LAG_SECONDS: _group_lag_seconds,
    catalogue.GROUP_STATE: _group_state,
    catalogue.GROUP_MEMBERS: _group_members,
}


def _newest_checkpoints(view: FlowSeriesView) -> list[tuple[Labels, float]]:
    report = view.report
    return [
        ((*view.labels, group.group), group.checkpoint_at)
        for group in (view.groups() if report.target_readable else ())
        if group.checkpoint_at is not None
    ]


def _checkpoint_time(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [*_newest_checkpoints(view)]


def _checkpoint_age(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [(labels, view.report.at - at) for labels, at in _newest_checkpoints(view)]


def _checkpoint_lag(view: FlowSeriesView, granularity: Granularity) -> list[Series]:
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


CHECKPOINT_SERIES: Final[SeriesTable] = {
    catalogue.CHECKPOINT_LAST_TIMESTAMP_SECONDS: _checkpoint_time,
    catalogue.CHECKPOINT_AGE_SECONDS: _checkpoint_age,
    catalogue.CHECKPOINT_LAG_RECORDS: _checkpoint_lag,
}


def _judged_groups(view: FlowSeriesView) -> list[GroupState]:
    return view.groups() if view.report.target_readable else []


def _hidden_groups(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(len(view.report.hidden_groups))


def _redelivery(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group, bound), records)
        for group in _judged_groups(view)
        for bound, records in (
            ("lower", group.readiness.redelivery_lower),
            ("upper", group.readiness.redelivery_upper),
        )
        if records is not None
    ]


def _skipped(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group, bound), records)
        for group in _judged_groups(view)
        if group.readiness.skipped[1]
        for bound, records in zip(("lower", "upper"), group.readiness.skipped, strict=True)
    ]


def _series_of_groups(get: Callable[[GroupState], float | None]) -> SeriesOf:
    """A value of each group of which it is known."""

    def series(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
        found = ((group.group, get(group)) for group in _judged_groups(view))
        return [((*view.labels, name), value) for name, value in found if value is not None]

    return series


def _series_of_recovery_point(get: Callable[[RecoveryPoint, float], float | None]) -> SeriesOf:
    """A value of the recovery point at the time of the report."""

    def series(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
        point = view.report.recovery_point
        return view.flow_series(None if point is None else get(point, view.report.at))

    return series


def _commits_age(view: FlowSeriesView, granularity: Granularity) -> SeriesList:
    return _series_of_groups(
        lambda group: None if group.commits_at is None else view.report.at - group.commits_at
    )(view, granularity)


def _blocking_reasons(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return [
        ((*view.labels, group.group, blocked.reason.value), 1)
        for group in _judged_groups(view)
        for blocked in group.readiness.blocked
    ]


def _unjudged_groups(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    found = view.report.unjudged_groups
    return [
        ((*view.labels, "excluded"), len(found.excluded)),
        ((*view.labels, "without_commits"), len(found.without_commits)),
    ]


def _group_types_known(view: FlowSeriesView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(int(view.report.unjudged_groups.all_types))


FAILOVER_SERIES: Final[SeriesTable] = {
    catalogue.FAILOVER_REDELIVERY_RECORDS: _redelivery,
    catalogue.FAILOVER_SKIPPED_RECORDS: _skipped,
    catalogue.FAILOVER_COMMITS_AGE_SECONDS: _commits_age,
    catalogue.FAILOVER_UNREPLICATED_RECORDS: _series_of_recovery_point(
        lambda point, _at: point.records
    ),
    catalogue.FAILOVER_UNREPLICATED_SECONDS: _series_of_recovery_point(
        lambda point, _at: point.seconds
    ),
    catalogue.FAILOVER_UNREPLICATED_AGE_SECONDS: _series_of_recovery_point(
        lambda point, at: at - point.read_at
    ),
    catalogue.FAILOVER_GROUP_UNREPLICATED_RECORDS: _series_of_groups(
        attrgetter("unreplicated.records")
    ),
    catalogue.FAILOVER_GROUP_UNREPLICATED_SECONDS: _series_of_groups(
        attrgetter("unreplicated.seconds")
    ),
    catalogue.FAILOVER_READY: _series_of_groups(lambda group: int(group.readiness.ready)),
    catalogue.FAILOVER_BLOCKED: _blocking_reasons,
    catalogue.FAILOVER_UNJUDGED_GROUPS: _unjudged_groups,
    catalogue.FAILOVER_GROUP_TYPES_KNOWN: _group_types_known,
    catalogue.EXPORTER_HIDDEN_GROUPS: _hidden_groups,
}

READY_FLOW_METRICS: Final = frozenset(
    {
        catalogue.EXPORTER_HIDDEN_GROUPS,
        catalogue.FAILOVER_UNJUDGED_GROUPS,
        catalogue.FAILOVER_GROUP_TYPES_KNOWN,
    }
)
