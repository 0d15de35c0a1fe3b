"""Renders metric families in both Prometheus text formats."""

from mm2slo_exporter.exposition.exposition_format import Format
from mm2slo_exporter.exposition.metric_family import (
    ExpositionError,
    Family,
    Histogram,
    SeriesColumns,
    SeriesList,
    count_series,
)
from mm2slo_exporter.exposition.renderer import Renderer
from mm2slo_exporter.exposition.series_limit import LimitedFamilies, limit_series
from mm2slo_exporter.exposition.snapshot import Body, Encoding, Snapshot

__all__ = [
    "Body",
    "Encoding",
    "ExpositionError",
    "Family",
    "Format",
    "Histogram",
    "LimitedFamilies",
    "Renderer",
    "SeriesColumns",
    "SeriesList",
    "Snapshot",
    "count_series",
    "limit_series",
]
