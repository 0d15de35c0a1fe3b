"""Reports as CSV, Markdown and HTML (pure functions)."""

from mm2slo_report.rendering.csv_report import COLUMNS, as_csv
from mm2slo_report.rendering.html_report import CONTENT_SECURITY_POLICY, as_html, page
from mm2slo_report.rendering.markdown_report import as_markdown
from mm2slo_report.rendering.page_views import (
    AuditView,
    FlowView,
    GroupView,
    LatencyView,
    PercentileView,
)
from mm2slo_report.rendering.references import References

__all__ = [
    "COLUMNS",
    "CONTENT_SECURITY_POLICY",
    "AuditView",
    "FlowView",
    "GroupView",
    "LatencyView",
    "PercentileView",
    "References",
    "as_csv",
    "as_html",
    "as_markdown",
    "page",
]
