"""Sources of SLI history: a port, Prometheus, and the embedded recorder."""

from mm2slo_report.sources.sli_source import SliSource, SliSourceError

__all__ = ["SliSource", "SliSourceError"]
