"""The exporter's pages: scrapes, probes, an overview, and reloads."""

from mm2slo_exporter.web.app import exporter_server
from mm2slo_exporter.web.site import (
    FlowOverview,
    FlowReadiness,
    Readiness,
    ReloadResult,
    Site,
)

__all__ = [
    "FlowOverview",
    "FlowReadiness",
    "Readiness",
    "ReloadResult",
    "Site",
    "exporter_server",
]
