"""Where the history of indicators comes from: one port, and what stands behind it."""

from mm2slo_report.sources.port import SliSource, SliSourceError

__all__ = ["SliSource", "SliSourceError"]
