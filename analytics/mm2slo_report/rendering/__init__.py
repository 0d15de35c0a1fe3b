"""Reports as JSON, CSV, Markdown and HTML: pure functions, data in and text out."""

from mm2slo_report.rendering.document import detail_document, entry_document, report_document
from mm2slo_report.rendering.html import CONTENT_SECURITY_POLICY, as_html, page
from mm2slo_report.rendering.json_text import as_json
from mm2slo_report.rendering.markdown import as_markdown
from mm2slo_report.rendering.references import References
from mm2slo_report.rendering.table import COLUMNS, as_csv
from mm2slo_report.rendering.views import (
    AuditView,
    EvidenceView,
    FlowView,
    GroupView,
    LatencyView,
    PercentileView,
)

__all__ = [
    "COLUMNS",
    "CONTENT_SECURITY_POLICY",
    "AuditView",
    "EvidenceView",
    "FlowView",
    "GroupView",
    "LatencyView",
    "PercentileView",
    "References",
    "as_csv",
    "as_html",
    "as_json",
    "as_markdown",
    "detail_document",
    "entry_document",
    "page",
    "report_document",
]
