"""Reports as JSON text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mm2slo_report.rendering.json_document import NO_REFERENCES, cost_document, report_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.reporting.incidents import Cost
    from mm2slo_core.reporting.slo_report import Report
    from mm2slo_report.rendering.references import References


def as_json(
    report: Report, costs: Sequence[Cost] = (), references: References = NO_REFERENCES
) -> str:
    """RFC 8259 JSON on one line, with a final line break; *costs* are the costliest incidents."""
    document = {
        **report_document(report, references),
        "incidents": [cost_document(each) for each in costs],
    }
    return json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n"
