"""Series of topics in blocks, which are kept while the states of their topics are the same."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Final

from mm2slo_exporter.exposition import Family
from mm2slo_exporter.families import (
    drift_series,
    lag_series,
    offset_sync_series,
    position_series,
    retention_series,
    stall_series,
    throughput_series,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.catalogue import Granularity, Metric
    from mm2slo_exporter.families.flow_view import FlowView, SeriesOf
    from mm2slo_exporter.families.label_cache import Labels
    from mm2slo_exporter.state.flow_report import TopicState

_PARTITIONS_PER_BLOCK = 1000

STEADY: Final[Mapping[Metric, SeriesOf]] = {
    metric: series
    for module in (
        position_series,
        lag_series,
        stall_series,
        throughput_series,
        retention_series,
        drift_series,
        offset_sync_series,
    )
    for metric, series in module.SERIES.items()
    if "topic" in metric.labels
}
"""Metrics with series per topic or partition, which depend on states alone, not on the time."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What the series of a block depend on."""

    states: tuple[TopicState, ...]
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
    """Some topics of one flow, with the families made of them at one granularity."""

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
        self._kept: dict[Labels, list[_Block]] = {}

    def update(self, views: Iterable[FlowView]) -> None:
        """Take the newest views; blocks of unchanged topics keep their families."""
        self._kept = {view.labels: self._blocks(view) for view in views}

    def families(self, metric: Metric, granularity: Granularity, view: FlowView) -> list[Family]:
        """The families of a metric and flow that have series, one per block."""
        found = (block.family(metric, granularity) for block in self._kept[view.labels])
        return [family for family in found if family.series]

    def _blocks(self, view: FlowView) -> list[_Block]:
        before = self._kept.get(view.labels, [])
        found = []
        for number, part in enumerate(view.split(_PARTITIONS_PER_BLOCK)):
            key = _Key(
                tuple(topic.state for topic in part.topics),
                view.report.source_readable,
                view.report.target_readable,
            )
            if number < len(before) and before[number].key.is_same(key):
                before[number].view = part  # releases the report of an earlier round
                found.append(before[number])
            else:
                found.append(_Block(key, part))
        return found
