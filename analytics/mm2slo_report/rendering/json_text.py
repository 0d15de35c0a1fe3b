"""Reports as JSON text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mm2slo_report.rendering.document import NO_REFERENCES, report_document

if TYPE_CHECKING:
    from mm2slo_core.reporting.report import Report
    from mm2slo_report.rendering.references import References


def as_json(report: Report, references: References = NO_REFERENCES) -> str:
    """RFC 8259, in one line: no NaN, no infinities, and a line break at the end."""
    document = report_document(report, references)
    return json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n"
