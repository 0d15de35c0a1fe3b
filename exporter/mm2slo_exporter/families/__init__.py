"""Metric families of flows and of the exporter, as pure functions of their reports.

Each module has a table with the series of one flow for each of its metrics. Unknown values are
not published; each module documents what that means while a cluster is unreadable.
"""

from mm2slo_exporter.families.exporter_series import ExporterReport, ReloadResult
from mm2slo_exporter.families.family_composer import SeriesCache, families, limited_families
from mm2slo_exporter.families.hidden_groups import hide_other_groups

__all__ = [
    "ExporterReport",
    "ReloadResult",
    "SeriesCache",
    "families",
    "hide_other_groups",
    "limited_families",
]
