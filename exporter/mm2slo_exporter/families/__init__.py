"""Metric families: what is published of each flow and of the exporter, as pure functions.

Each module holds one subject and offers a table: for each of its metrics, the series of one flow.
A figure that is not known is left out; each module says what that means while a cluster cannot
be read. Figures that the report holds as None follow the report.
"""

from mm2slo_exporter.families.composer import families, limited_families
from mm2slo_exporter.families.labels import LabelCache
from mm2slo_exporter.families.own_health import OwnReport, ProcessReport, ReloadResult

__all__ = [
    "LabelCache",
    "OwnReport",
    "ProcessReport",
    "ReloadResult",
    "families",
    "limited_families",
]
