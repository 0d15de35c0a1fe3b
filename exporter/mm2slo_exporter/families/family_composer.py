"""All families of an exposition in catalogue order; each metric once, for all flows."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_core.catalogue import Granularity
from mm2slo_exporter.exposition import Family, LimitedFamilies, count_series, limit_series
from mm2slo_exporter.families import (
    canary_series,
    checkpoint_series,
    connect_series,
    drift_series,
    failover_series,
    flow_series,
    group_series,
    heartbeat_series,
    lag_series,
    offset_sync_series,
    position_series,
    retention_series,
    sli_series,
    stall_series,
    throughput_series,
    timeline_series,
)
from mm2slo_exporter.families.exporter_series import EXPORTER_TABLE, ExporterReport
from mm2slo_exporter.families.flow_view import FlowView
from mm2slo_exporter.families.hidden_groups import hide_groups_over_limit
from mm2slo_exporter.families.label_cache import LabelCache
from mm2slo_exporter.families.topic_blocks import STEADY, TopicBlocks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.catalogue import Metric
    from mm2slo_exporter.exposition import SeriesList
    from mm2slo_exporter.families.flow_view import SeriesOf, SeriesTable
    from mm2slo_exporter.state.flow_report import FlowReport

FLOW_TABLES: Final[tuple[SeriesTable, ...]] = (
    flow_series.SERIES,
    heartbeat_series.SERIES,
    canary_series.SERIES,
    position_series.SERIES,
    lag_series.SERIES,
    stall_series.SERIES,
    throughput_series.SERIES,
    retention_series.SERIES,
    drift_series.SERIES,
    offset_sync_series.SERIES,
    checkpoint_series.SERIES,
    failover_series.SERIES,
    group_series.SERIES,
    connect_series.SERIES,
    sli_series.SERIES,
    timeline_series.SERIES,
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
        *(failover_series.SERIES.keys() - failover_series.OF_READY_FLOWS),
    }
)
"""Metrics published for a flow whose topics have not all been read yet."""

NEEDS_MIRRORMAKER: Final = frozenset(
    {
        *heartbeat_series.SERIES,
        *(lag_series.SERIES.keys() - {catalogue.OPEN_TRANSACTION_RECORDS}),
        *stall_series.SERIES,
        *retention_series.SERIES,
        *offset_sync_series.SERIES,
        *checkpoint_series.SERIES,
        *failover_series.SERIES,
        *group_series.SERIES,
        *connect_series.SERIES,
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


class SeriesCache:
    """What is kept between calls of `families`. Not thread-safe."""

    def __init__(self) -> None:
        self.labels = LabelCache()
        self.blocks = TopicBlocks()


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
    views = [FlowView.of(report, cache.labels) for report in reports]
    cache.labels.forget_unused()
    cache.blocks.update(views)
    found: list[Family] = []
    for metric in catalogue.ALL:
        if metric is catalogue.EXPORTER_SERIES or not metric.published_at(granularity):
            continue
        if metric in STEADY and granularity >= Granularity.TOPIC:
            for view in _published(metric, views):
                found += cache.blocks.families(metric, granularity, view)
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
    metric: Metric, views: Sequence[FlowView], own: ExporterReport, granularity: Granularity
) -> SeriesList:
    of_own = EXPORTER_TABLE.get(metric)
    if of_own is not None:
        return of_own(own, granularity)
    of_flow = _FLOW_SERIES[metric]
    parts = [of_flow(view, granularity) for view in _published(metric, views)]
    return parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))


def _published(metric: Metric, views: Sequence[FlowView]) -> list[FlowView]:
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
    size = Family(catalogue.EXPORTER_SERIES, [((), count_series(found) + 1)], granularity)
    return sorted([*found, size], key=lambda family: _ORDER[family.metric])
