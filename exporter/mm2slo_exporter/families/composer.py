"""All families of an exposition, in catalogue order, each metric once over all flows."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_exporter.exposition import Family, LimitedFamilies, count_series, limit_series
from mm2slo_exporter.families import (
    canary,
    checkpoints,
    connect,
    drift,
    failover,
    flow,
    heartbeats,
    lag,
    offset_syncs,
    positions,
    retention,
    sli,
    stall,
    throughput,
    timeline,
)
from mm2slo_exporter.families.labels import LabelCache
from mm2slo_exporter.families.own_health import OWN_SERIES, OwnReport
from mm2slo_exporter.families.view import FlowView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.catalogue import Granularity, Metric
    from mm2slo_exporter.families.view import Series, SeriesOf, SeriesTable
    from mm2slo_exporter.state.model import FlowReport

FLOW_TABLES: Final[tuple[SeriesTable, ...]] = tuple(
    module.SERIES
    for module in (
        flow,
        heartbeats,
        canary,
        positions,
        lag,
        stall,
        throughput,
        retention,
        drift,
        offset_syncs,
        checkpoints,
        failover,
        connect,
        sli,
        timeline,
    )
)
_FLOW_SERIES: Final[Mapping[Metric, SeriesOf]] = dict(
    chain.from_iterable(table.items() for table in FLOW_TABLES)
)
_ORDER: Final[Mapping[Metric, int]] = {metric: at for at, metric in enumerate(catalogue.ALL)}

BEFORE_READY: Final = frozenset(
    {
        catalogue.FLOW_INFO,
        catalogue.FLOW_STATE,
        catalogue.EXPORTER_FLOW_READY,
        catalogue.SLI_GOOD_EVENTS_TOTAL,
        catalogue.SLI_EVENTS_TOTAL,
        catalogue.SLI_UNKNOWN_EVENTS_TOTAL,
    }
)
"""What is published of a flow whose topics have not all been read yet."""

NEEDS_MIRRORMAKER: Final = frozenset(
    {
        *heartbeats.SERIES,
        *(lag.SERIES.keys() - {catalogue.OPEN_TRANSACTION_RECORDS}),
        *stall.SERIES,
        *retention.SERIES,
        *offset_syncs.SERIES,
        *checkpoints.SERIES,
        *failover.SERIES,
        *connect.SERIES,
        catalogue.REPLICATED_PARTITIONS,
        catalogue.REPLICATED_SOURCE_OFFSET,
        catalogue.POSITION_QUALITY,
        catalogue.REPLICATED_RECORDS_TOTAL,
        catalogue.ASSIGNED_MISSING_PARTITIONS,
        catalogue.UNASSIGNED_PARTITIONS,
    }
)
"""What no other engine leaves a trace of: zeros would say that there is nothing wrong."""


def families(
    reports: Sequence[FlowReport],
    own: OwnReport,
    granularity: Granularity,
    labels: LabelCache | None = None,
) -> list[Family]:
    """The families of *reports* and of the exporter itself; those without series are left out.

    Pure: *labels* only keeps label tuples from call to call, for speed.
    """
    cache = LabelCache() if labels is None else labels
    views = [FlowView.of(report, cache) for report in reports]
    cache.forget_unused()
    found = []
    for metric in catalogue.ALL:
        if metric is not catalogue.EXPORTER_SERIES and metric.published_at(granularity):
            series = _series(metric, views, own, granularity)
            if series:
                found.append(Family(metric, series, granularity))
    return _with_size(found, granularity)


def limited_families(
    reports: Sequence[FlowReport],
    own: OwnReport,
    wanted: Granularity,
    series_limit: int,
    labels: LabelCache | None = None,
) -> LimitedFamilies:
    """The families at the finest granularity, not finer than *wanted*, that keeps the limit.

    `mm2_exporter_granularity` tells which one it is.
    """
    return limit_series(
        lambda granularity: families(reports, own, granularity, labels), wanted, series_limit
    )


def _series(
    metric: Metric, views: Sequence[FlowView], own: OwnReport, granularity: Granularity
) -> list[Series]:
    of_own = OWN_SERIES.get(metric)
    if of_own is not None:
        return of_own(own, granularity)
    of_flow = _FLOW_SERIES[metric]
    early = metric in BEFORE_READY
    needs_mirrormaker = metric in NEEDS_MIRRORMAKER
    parts = [
        of_flow(view, granularity)
        for view in views
        if (early or view.report.ready) and (view.report.by_mirrormaker or not needs_mirrormaker)
    ]
    return parts[0] if len(parts) == 1 else list(chain.from_iterable(parts))


def _with_size(found: list[Family], granularity: Granularity) -> list[Family]:
    """The families with `mm2_exporter_series` in its place, which counts itself."""
    size = Family(catalogue.EXPORTER_SERIES, [((), count_series(found) + 1)], granularity)
    return sorted([*found, size], key=lambda family: _ORDER[family.metric])
