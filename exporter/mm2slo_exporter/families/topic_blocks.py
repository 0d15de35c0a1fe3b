"""Series of topics and of groups by topic in blocks, which are kept while their states are."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Final

from mm2slo_exporter.exposition import Family
from mm2slo_exporter.families import (
    checkpoint_series,
    drift_series,
    group_series,
    lag_series,
    offset_sync_series,
    position_series,
    retention_series,
    stall_series,
    throughput_series,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mm2slo_core.catalogue import Granularity, Metric
    from mm2slo_exporter.families.flow_view import FlowView, SeriesOf, SeriesTable
    from mm2slo_exporter.families.label_cache import Labels

_PARTITIONS_PER_BLOCK = 1000


def _by_topic(*tables: SeriesTable) -> dict[Metric, SeriesOf]:
    return {
        metric: series
        for table in tables
        for metric, series in table.items()
        if "topic" in metric.labels
    }


_OF_GROUPS: Final = _by_topic(group_series.SERIES, checkpoint_series.SERIES)
STEADY: Final[Mapping[Metric, SeriesOf]] = _OF_GROUPS | _by_topic(
    position_series.SERIES,
    lag_series.SERIES,
    stall_series.SERIES,
    throughput_series.SERIES,
    retention_series.SERIES,
    drift_series.SERIES,
    offset_sync_series.SERIES,
)
"""Metrics with series per topic or partition that depend on states alone, not on the time."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What the series of a block depend on."""

    states: tuple[object, ...]
    source_readable: bool
    target_readable: bool

    def is_same(self, other: _Key) -> bool:
        """Whether the states are the same objects: comparing their values would cost more."""
        return (
            len(self.states) == len(other.states)
            and all(map(is_, self.states, other.states))
            and self.source_readable == other.source_readable
            and self.target_readable == other.target_readable
        )


class _Block:
    """Some topics of one flow, or its groups, with their families at one granularity."""

    def __init__(self, key: _Key, view: FlowView) -> None:
        self.key = key
        self.view = view
        self._granularity: Granularity | None = None
        self._families: dict[Metric, Family] = {}

    def family(self, metric: Metric, granularity: Granularity) -> Family:
        if granularity is not self._granularity:
            self._granularity = granularity
            self._families.clear()
        found = self._families.get(metric)
        if found is None:
            series = STEADY[metric](self.view, granularity)
            found = self._families[metric] = Family(metric, series, granularity)
        return found


class TopicBlocks:
    """The blocks of all published flows. Not thread-safe."""

    def __init__(self) -> None:
        self._topics: dict[Labels, list[_Block]] = {}
        self._groups: dict[Labels, list[_Block]] = {}

    def update(self, views: Iterable[FlowView]) -> None:
        """Take the newest views; blocks of unchanged topics and groups keep their families."""
        topics, self._topics = self._topics, {}
        groups, self._groups = self._groups, {}
        for view in views:
            of_topics = [
                (part, tuple(topic.state for topic in part.topics))
                for part in view.split(_PARTITIONS_PER_BLOCK)
            ]
            self._topics[view.labels] = _blocks(of_topics, topics.get(view.labels, []))
            of_groups = [(view, _states_of_groups(view))]
            self._groups[view.labels] = _blocks(of_groups, groups.get(view.labels, []))

    def families(self, metric: Metric, granularity: Granularity, view: FlowView) -> list[Family]:
        """The families of a metric and flow that have series, one per block."""
        blocks = (self._groups if metric in _OF_GROUPS else self._topics)[view.labels]
        found = (block.family(metric, granularity) for block in blocks)
        return [family for family in found if family.series]


def _states_of_groups(view: FlowView) -> tuple[object, ...]:
    """What the series of groups by topic consist of; later rounds have the same objects."""
    return (
        *(group.by_topic for group in view.group_lags()),
        *(group.checkpoint_lag_by_topic for group in view.groups()),
    )


def _blocks(
    wanted: Iterable[tuple[FlowView, tuple[object, ...]]], before: Sequence[_Block]
) -> list[_Block]:
    found = []
    for number, (view, states) in enumerate(wanted):
        key = _Key(states, view.report.source_readable, view.report.target_readable)
        if number < len(before) and before[number].key.is_same(key):
            before[number].view = view  # releases the report of an earlier round
            found.append(before[number])
        else:
            found.append(_Block(key, view))
    return found
