"""Canary outcomes and latencies; not published for flows without canaries.

The time of the newest arrival is not published while the target is unreadable; the counters are.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_exporter.families.latency_histograms import latency_series

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesOf, SeriesTable
    from mm2slo_exporter.families.label_cache import Labels


def _labels(view: FlowView) -> Labels:
    return (*view.labels, view.report.info.canary)


def _series(view: FlowView, value: float | None) -> list[Series]:
    if view.report.canary is None or value is None:
        return []
    return [(_labels(view), value)]


def _total(outcome: str) -> SeriesOf:
    get = attrgetter(outcome)

    def series(view: FlowView, _granularity: Granularity) -> list[Series]:
        totals = view.report.canary
        return _series(view, None if totals is None else get(totals))

    return series


def _latency(view: FlowView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return [] if report.canary is None else latency_series(_labels(view), report.canary_latency)


def _pending(view: FlowView, _granularity: Granularity) -> list[Series]:
    return _series(view, view.report.canary_pending)


def _arrived_at(view: FlowView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return _series(view, report.canary_arrived_at if report.target_readable else None)


SERIES: Final[SeriesTable] = {
    catalogue.CANARY_LATENCY_SECONDS: _latency,
    catalogue.CANARY_SENT_TOTAL: _total("sent"),
    catalogue.CANARY_RECEIVED_TOTAL: _total("received"),
    catalogue.CANARY_LATE_TOTAL: _total("late"),
    catalogue.CANARY_LOST_TOTAL: _total("lost"),
    catalogue.CANARY_EXPIRED_TOTAL: _total("expired"),
    catalogue.CANARY_DUPLICATES_TOTAL: _total("duplicates"),
    catalogue.CANARY_REORDERED_TOTAL: _total("reordered"),
    catalogue.CANARY_MOVED_TOTAL: _total("moved"),
    catalogue.CANARY_UNKNOWN_TOTAL: _total("unknown"),
    catalogue.CANARY_PENDING: _pending,
    catalogue.CANARY_LAST_ARRIVAL_TIMESTAMP_SECONDS: _arrived_at,
}
