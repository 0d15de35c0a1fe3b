"""The exporter's web server: scrapes, probes, a page, and reloads."""

from mm2slo_exporter.web.access import WebConfigFile
from mm2slo_exporter.web.config import WebConfig
from mm2slo_exporter.web.config_report import parse_web_config
from mm2slo_exporter.web.connection import Limits
from mm2slo_exporter.web.server import ExporterServer
from mm2slo_exporter.web.site import (
    FlowOverview,
    FlowReadiness,
    Readiness,
    ReloadResult,
    Site,
)

__all__ = [
    "ExporterServer",
    "FlowOverview",
    "FlowReadiness",
    "Limits",
    "Readiness",
    "ReloadResult",
    "Site",
    "WebConfig",
    "WebConfigFile",
    "parse_web_config",
]
