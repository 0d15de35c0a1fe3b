"""Lag, state and members of consumer groups on both clusters; absent for an unreadable cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue import Granularity
from mm2slo_exporter.state.lag_sum import sum_lags

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable
    from mm2slo_exporter.families.label_cache import Labels
    from mm2slo_exporter.state.group_lag import GroupLag
    from mm2slo_exporter.state.lag_sum import LagSum


def _groups(view: FlowView) -> Iterator[tuple[Labels, GroupLag]]:
    for group in view.group_lags():
        yield (*view.labels, group.cluster, group.group), group


def _unread(view: FlowView, granularity: Granularity) -> Iterator[tuple[Labels, LagSum]]:
    for labels, group in _groups(view):
        if granularity >= Granularity.TOPIC:
            for topic, unread in group.by_topic.items():
                yield (*labels, topic), unread
        else:
            yield labels, sum_lags(group.by_topic.values())


def _records(view: FlowView, granularity: Granularity) -> list[Series]:
    unread = _unread(view, granularity)
    return [(labels, each.records) for labels, each in unread if each.records is not None]


def _seconds(view: FlowView, granularity: Granularity) -> list[Series]:
    unread = _unread(view, granularity)
    return [(labels, each.seconds) for labels, each in unread if each.seconds is not None]


def _state(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [((*labels, each.state), 1) for labels, each in _groups(view) if each.state is not None]


def _members(view: FlowView, _granularity: Granularity) -> list[Series]:
    return [(labels, each.members) for labels, each in _groups(view) if each.members is not None]


SERIES: Final[SeriesTable] = {
    catalogue.GROUP_LAG_RECORDS: _records,
    catalogue.GROUP_LAG_SECONDS: _seconds,
    catalogue.GROUP_STATE: _state,
    catalogue.GROUP_MEMBERS: _members,
}
