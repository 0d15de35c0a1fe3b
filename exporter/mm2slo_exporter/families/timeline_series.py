"""Records that this exporter writes to a flow's watermark timeline, if it is enabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mm2slo_core import catalogue

if TYPE_CHECKING:
    from mm2slo_core.catalogue import Granularity
    from mm2slo_exporter.families.flow_view import FlowView, Series, SeriesTable


def _writer(view: FlowView, _granularity: Granularity) -> list[Series]:
    timeline = view.report.timeline
    return view.flow_series(None if timeline is None else int(timeline.writer))


def _bytes(view: FlowView, _granularity: Granularity) -> list[Series]:
    timeline = view.report.timeline
    return view.flow_series(None if timeline is None else timeline.bytes_total)


def _records(view: FlowView, _granularity: Granularity) -> list[Series]:
    timeline = view.report.timeline
    return view.flow_series(None if timeline is None else timeline.records_total)


def _bracket(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.arrival_bracket)


def _history_start(view: FlowView, _granularity: Granularity) -> list[Series]:
    return view.flow_series(view.report.history_since)


SERIES: Final[SeriesTable] = {
    catalogue.EXPORTER_TIMELINE_WRITER: _writer,
    catalogue.EXPORTER_TIMELINE_BYTES_TOTAL: _bytes,
    catalogue.EXPORTER_TIMELINE_RECORDS_TOTAL: _records,
    catalogue.EXPORTER_ARRIVAL_BRACKET_SECONDS: _bracket,
    catalogue.EXPORTER_HISTORY_START_TIMESTAMP_SECONDS: _history_start,
}
