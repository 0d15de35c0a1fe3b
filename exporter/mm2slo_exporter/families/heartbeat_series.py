"""MirrorMaker 2's heartbeats on the target.

Presence and age are not published while the target is unreadable. Counters and the histogram are
always published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue
from mm2slo_exporter.families.latency_histograms import latency_series

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable


def _present(view: FlowView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return view.flow_series(int(report.heartbeats.present) if report.target_readable else None)


def _newest_at(view: FlowView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return view.flow_series(report.heartbeats.newest_at if report.target_readable else None)


def _age(view: FlowView, _granularity: Granularity) -> list[Series]:
    report = view.report
    return view.flow_series(report.heartbeats.age_seconds if report.target_readable else None)


def _latency(view: FlowView, _granularity: Granularity) -> list[Series]:
    return latency_series(view.labels, view.report.heartbeat_latency)


def _received(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.heartbeats.received_total)


def _missing(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.heartbeats.missing_total)


SERIES: Final[SeriesTable] = {
    catalogue.HEARTBEATS_PRESENT: _present,
    catalogue.HEARTBEAT_LAST_TIMESTAMP_SECONDS: _newest_at,
    catalogue.HEARTBEAT_AGE_SECONDS: _age,
    catalogue.HEARTBEAT_LATENCY_SECONDS: _latency,
    catalogue.HEARTBEATS_RECEIVED_TOTAL: _received,
    catalogue.HEARTBEATS_MISSING_TOTAL: _missing,
}
