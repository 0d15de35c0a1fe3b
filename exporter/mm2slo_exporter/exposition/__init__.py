"""The exposition: families of series in, bytes in both Prometheus text formats out."""

from mm2slo_exporter.exposition.family import ExpositionError, Family, Histogram, count_series
from mm2slo_exporter.exposition.limit import LimitedFamilies, limit_series
from mm2slo_exporter.exposition.metadata import Format
from mm2slo_exporter.exposition.renderer import Renderer
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
    "Snapshot",
    "count_series",
    "limit_series",
]
