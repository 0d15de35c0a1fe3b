"""All families of an exposition in catalogue order; each metric once, for all flows.

Series of topics, and of groups by topic, are kept in blocks while their states are. Groups are
hidden by configuration, or by the series limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import is_
from typing import Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue.metric import Granularity, Metric
from mm2slo_core.topology import Flow
from mm2slo_exporter.exposition_family import (
    Family,
    LimitedFamilies,
    SeriesList,
    count_series,
    limit_series,
)
from mm2slo_exporter.families import canary_series, flow_series, group_series, replication_series
from mm2slo_exporter.families.exporter_series import EXPORTER_TABLE, ExporterReport
from mm2slo_exporter.families.series_view import (
    FlowSeriesView,
    Labels,
    SeriesOf,
    SeriesTable,
)
from mm2slo_exporter.state.flow_report import FlowReport

FLOW_TABLES: Final[tuple[SeriesTable, ...]] = (
    flow_series.FLOW_SERIES,
    canary_series.HEARTBEAT_SERIES,
    canary_series.CANARY_SERIES,
    replication_series.POSITION_SERIES,
    replication_series.LAG_SERIES,
    replication_series.STALL_SERIES,
    replication_series.THROUGHPUT_SERIES,
    replication_series.RETENTION_SERIES,
    flow_series.DRIFT_SERIES,
    replication_series.OFFSET_SYNC_SERIES,
    group_series.CHECKPOINT_SERIES,
    group_series.FAILOVER_SERIES,
    group_series.GROUP_LAG_SERIES,
    flow_series.CONNECT_SERIES,
    canary_series.SLI_SERIES,
    flow_series.TIMELINE_SERIES,
)

_FLOW_SERIES: Final[Mapping[Metric, SeriesOf]] = dict(
    chain.from_iterable(table.items() for table in FLOW_TABLES)
)
_ORDER: Final[Mapping[Metric, int]] = {metric: at for at, metric in enumerate(catalogue.ALL)}

BEFORE_READY: Final = frozenset(
    {
        catalogue.FLOW_INFO,
        catalogue.FLOW_STATE,
        catalogue.FLOW_OBSERVED_TIMESTAMP_SECONDS,
        catalogue.EXPORTER_FLOW_READY,
        catalogue.EXPORTER_SKIPPED_ROUNDS_TOTAL,
        catalogue.SOURCE_START_OFFSET,
        catalogue.SOURCE_END_OFFSET,
        catalogue.SLI_GOOD_EVENTS_TOTAL,
        catalogue.SLI_EVENTS_TOTAL,
        catalogue.SLI_UNKNOWN_EVENTS_TOTAL,
        # Of an earlier process, while the source is unreadable.
        *(group_series.FAILOVER_SERIES.keys() - group_series.READY_FLOW_METRICS),
    }
)
"""Metrics published for a flow whose topics have not all been read yet."""

NEEDS_MIRRORMAKER: Final = frozenset(
    {
        *canary_series.HEARTBEAT_SERIES,
        *(replication_series.LAG_SERIES.keys() - {catalogue.OPEN_TRANSACTION_RECORDS}),
        *replication_series.STALL_SERIES,
        *replication_series.RETENTION_SERIES,
        *replication_series.OFFSET_SYNC_SERIES,
        *group_series.CHECKPOINT_SERIES,
        *group_series.FAILOVER_SERIES,
        *group_series.GROUP_LAG_SERIES,
        *flow_series.CONNECT_SERIES,
        catalogue.FLOW_SETTING_OVERRIDDEN,
        catalogue.REPLICATED_PARTITIONS,
        catalogue.REPLICATED_SOURCE_OFFSET,
        catalogue.POSITION_QUALITY,
        catalogue.REPLICATED_RECORDS_TOTAL,
        catalogue.ASSIGNED_MISSING_PARTITIONS,
        catalogue.UNASSIGNED_PARTITIONS,
    }
)
"""Metrics not published for other engines: zeros would wrongly mean that all is well."""


def families(
    reports: Sequence[FlowReport],
    own: ExporterReport,
    granularity: Granularity,
    cache: SeriesCache | None = None,
) -> list[Family]:
    """The families of *reports* and of the exporter itself, without families that have no series.

    A metric of topics has several families. *cache* keeps what has not changed between calls.
    """
    cache = SeriesCache() if cache is None else cache
    views = cache.update(reports)
    found: list[Family] = []
    for metric in catalogue.ALL:
        if metric is catalogue.EXPORTER_SERIES or not metric.published_at(granularity):
            continue
        if metric in STEADY and granularity >= Granularity.TOPIC:
            for view in _published(metric, views):
                found += cache.families(metric, granularity, view)
            continue
        series = _series(metric, views, own, granularity)
        if series:
            found.append(Family(metric, series, granularity))
    return _with_size(found, granularity)


def limited_families(
    reports: Sequence[FlowReport],
    own: ExporterReport,
    wanted: Granularity,
    series_limit: int,
    cache: SeriesCache | None = None,
) -> LimitedFamilies:
    """The families at the finest granularity, not finer than *wanted*, within the limit.

    If even flow level has more series, groups are left out. `mm2_exporter_granularity` shows the
    effective granularity, `mm2_exporter_hidden_groups` the number of groups left out.
    """
    limited = limit_series(
        lambda granularity: families(reports, own, granularity, cache), wanted, series_limit
    )
    if not limited.over_limit:
        return limited
    kept = hide_groups_over_limit(reports, limited.families, series_limit)
    fewer = limit_series(
        lambda granularity: families(kept, own, granularity, cache),
        limited.granularity,
        series_limit,
    )
    return replace(fewer, coarsened=limited.coarsened)


def _series(
    metric: Metric, views: Sequence[FlowSeriesView], own: ExporterReport, granularity: Granularity
) -> SeriesList:
    of_own = EXPORTER_TABLE.get(metric)
    if of_own is not None:
        return of_own(own, granularity)
    of_flow = _FLOW_SERIES[metric]
    parts = [of_flow(view, granularity) for view in _published(metric, views)]
    return parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))


def _published(metric: Metric, views: Sequence[FlowSeriesView]) -> list[FlowSeriesView]:
    """The flows with series of *metric*."""
    early = metric in BEFORE_READY
    needs_mirrormaker = metric in NEEDS_MIRRORMAKER
    return [
        view
        for view in views
        if (early or view.report.ready) and (view.report.by_mirrormaker or not needs_mirrormaker)
    ]


def _with_size(found: list[Family], granularity: Granularity) -> list[Family]:
    """Add `mm2_exporter_series`, which includes itself, in catalogue order."""
    # Sorted: both formats require all lines of a metric in one group.
    size = Family(catalogue.EXPORTER_SERIES, [((), count_series(found) + 1)], granularity)
    return sorted([*found, size], key=lambda family: _ORDER[family.metric])


_PARTITIONS_PER_BLOCK = 1000


def _by_topic(*tables: SeriesTable) -> dict[Metric, SeriesOf]:
    return {
        metric: series
        for table in tables
        for metric, series in table.items()
        if "topic" in metric.labels
    }


_OF_GROUPS: Final = _by_topic(group_series.GROUP_LAG_SERIES, group_series.CHECKPOINT_SERIES)

STEADY: Final[Mapping[Metric, SeriesOf]] = _OF_GROUPS | _by_topic(
    replication_series.POSITION_SERIES,
    replication_series.LAG_SERIES,
    replication_series.STALL_SERIES,
    replication_series.THROUGHPUT_SERIES,
    replication_series.RETENTION_SERIES,
    flow_series.DRIFT_SERIES,
    replication_series.OFFSET_SYNC_SERIES,
)
"""Metrics with series per topic or partition that depend on states alone, not on the time."""


class _Block:
    """Some topics of one flow, or its groups, with their families at one granularity."""

    def __init__(self, states: Sequence[object], view: FlowSeriesView) -> None:
        self.states = states
        """All that its series depend on."""
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


class SeriesCache:
    """What is kept between calls of `families`. Not thread-safe."""

    def __init__(self) -> None:
        self._views: dict[Flow, FlowSeriesView] = {}
        self._topics: dict[Labels, list[_Block]] = {}
        self._groups: dict[Labels, list[_Block]] = {}

    def update(self, reports: Iterable[FlowReport]) -> list[FlowSeriesView]:
        """Take the newest reports; blocks of unchanged topics and groups keep their families."""
        views = [FlowSeriesView.of(report, self._views.get(report.flow)) for report in reports]
        self._views = {view.report.flow: view for view in views}
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
        return views

    def families(
        self, metric: Metric, granularity: Granularity, view: FlowSeriesView
    ) -> list[Family]:
        """The families of a metric and flow that have series, one per block."""
        blocks = (self._groups if metric in _OF_GROUPS else self._topics)[view.labels]
        found = (block.family(metric, granularity) for block in blocks)
        return [family for family in found if family.series]


def _states_of_groups(view: FlowSeriesView) -> tuple[object, ...]:
    """What the series of groups by topic consist of; later rounds have the same objects."""
    return (
        *(group.by_topic for group in view.group_lags()),
        *(group.checkpoint_lag_by_topic for group in view.groups()),
    )


def _blocks(
    wanted: Iterable[tuple[FlowSeriesView, tuple[object, ...]]], before: Sequence[_Block]
) -> list[_Block]:
    found = []
    for number, (view, parts) in enumerate(wanted):
        block = before[number] if number < len(before) else None
        states = (*parts, view.report.source_readable, view.report.target_readable)
        # The same objects: comparing their values would cost more.
        if block and len(states) == len(block.states) and all(map(is_, states, block.states)):
            block.view = view  # releases the report of an earlier round
            found.append(block)
        else:
            found.append(_Block(states, view))
    return found


def hide_other_groups(report: FlowReport, shows: Callable[[str], bool]) -> FlowReport:
    """The report with only the groups that *shows* accepts."""
    hidden = frozenset(group for group in _readiness(report) if not shows(group))
    return replace(report, hidden_groups=hidden) if hidden else report


def hide_groups_over_limit(
    reports: Sequence[FlowReport], families: Iterable[Family], series_limit: int
) -> list[FlowReport]:
    """Hide groups until *families*, made of *reports*, are within the limit or none is left.

    Groups that are ready to fail over are hidden first, from the end of their names.
    """
    # Ready groups go first because no alert is about them; a fixed order keeps the same groups
    # published from scrape to scrape, so that their series have no gaps.
    found = list(families)
    excess = count_series(found) - series_limit
    sizes = _series_per_group(found)
    flows = {report.flow.label: set(report.hidden_groups) for report in reports}
    shown = sorted(
        (
            (ready, group, report.flow.label)
            for report in reports
            for group, ready in _readiness(report).items()
            if group not in report.hidden_groups
        ),
        reverse=True,
    )
    for _ready, group, flow in shown:
        if excess <= 0:
            break
        flows[flow].add(group)
        excess -= sizes[flow, group]
    return [
        replace(report, hidden_groups=frozenset(flows[report.flow.label])) for report in reports
    ]


def _readiness(report: FlowReport) -> dict[str, bool]:
    """Whether each group is ready to fail over; groups without a verdict are not blocked."""
    return {
        **{each.group: True for each in report.group_lags},
        **{each.group: each.readiness.ready for each in report.groups},
    }


def _series_per_group(families: Iterable[Family]) -> Counter[tuple[str, str]]:
    """The number of series by flow label and group."""
    sizes: Counter[tuple[str, str]] = Counter()
    for family in families:
        names = family.metric.labels_at(family.granularity)
        if family.metric.per_flow and "group" in names:
            at = names.index("group")
            sizes.update((labels[0], labels[at]) for labels, _ in family.series)
    return sizes
