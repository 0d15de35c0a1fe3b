"""Reports as CSV (RFC 4180): one row per objective and period, every digit."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.catalogue import WINDOW_SECONDS
from mm2slo_report.rendering.entry_models import Entry
from mm2slo_report.rendering.report_models import ObjectiveIncident
from mm2slo_report.rendering.value_format import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mm2slo_core.reporting.incidents import Cost
    from mm2slo_core.reporting.slo_report import Report

_PATHS: Final = {
    "id": "id",
    "flow": "flow.name",
    "source": "flow.source",
    "target": "flow.target",
    "sli": "sli.type",
    "tier": "sli.tier",
    "objective_ratio": "objective_ratio",
    "period": "window.name",
    "window_kind": "window.kind",
    "window_start": "window.start",
    "window_end": "window.end",
    "window_seconds": "window.duration_seconds",
    "as_of": "as_of",
    "status": "status",
    "status_reason": "status_reason",
    "status_pair": "status_pair",
    "sli_ratio": "sli_ratio",
    "is_current": "is_current",
    "stale_since": "stale_since",
    "good": "events.good",
    "bad": "events.bad",
    "total": "events.total",
    "unknown": "events.unknown",
    "excluded": "events.excluded",
    "allowed_error_ratio": "budget.allowed_error_ratio",
    "budget_consumed_ratio": "budget.consumed_ratio",
    "budget_remaining_ratio": "budget.remaining_ratio",
    "budget_total_events": "budget.total_events",
    "budget_remaining_events": "budget.remaining_events",
    "budget_total_seconds": "budget.total_seconds",
    "budget_remaining_seconds": "budget.remaining_seconds",
    "budget_is_estimate": "budget.is_estimate",
    **{f"burn_rate_{name}": f"burn_rate.{name}" for name in WINDOW_SECONDS},
    "time_to_exhaustion_seconds": "time_to_exhaustion_seconds",
    "projected_remaining_ratio": "projected_remaining_ratio",
    "coverage_ratio": "coverage.ratio",
    "coverage_last_hour_ratio": "coverage.last_hour_ratio",
    "samples": "coverage.samples",
    "expected_samples": "coverage.expected_samples",
    "known_since": "coverage.known_since",
    "previous_sli_ratio": "trend_vs_previous_window.sli_ratio",
    "previous_budget_remaining_ratio": "trend_vs_previous_window.remaining_ratio",
    "audited_up_to": "audit.audited_up_to",
    "audit": "audit.sentence",
    "owner": "owner",
    "spec_hash": "spec_hash",
    "warnings": "warnings",
    "errors": "errors",
    "previous_coverage_ratio": "trend_vs_previous_window.coverage_ratio",
}
_INCIDENT: Final = {
    "incident_start": "start",
    "incident_end": "end",
    "incident_bad_events": "bad_events",
    "incident_consumed_ratio": "consumed_ratio",
    "incident_equivalent_minutes": "equivalent_minutes",
}
_IDENTITY: Final = frozenset({"id", "flow", "sli", "tier"})
COLUMNS: Final = (*_PATHS, "record", *_INCIDENT)
"""The order is stable; new columns go last."""
_STARTS_A_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")


def as_csv(report: Report, costs: Sequence[Cost] = ()) -> str:
    """A header, a row per entry, then a row per incident of *costs*; unknown values are empty.

    The column `record` is `objective` or `incident`.

    An apostrophe precedes text that spreadsheets would read as a formula. Warnings are joined by
    `; `.
    """
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for entry in report.entries:
        document = Entry.of(entry).model_dump(mode="json")
        row = [_cell(_at(document, path)) for path in _PATHS.values()]
        writer.writerow([*row, "objective", *("" for _ in _INCIDENT)])
    for cost in costs:
        document = ObjectiveIncident.of(cost).model_dump(mode="json")
        found = {name: _cell(value) for name, value in document.items()}
        row = [found[name] if name in _IDENTITY else "" for name in _PATHS]
        incident = [found[name] for name in _INCIDENT.values()]
        writer.writerow([*row, "incident", *incident])
    return out.getvalue()


def _at(document: dict[str, Any], path: str) -> Any:
    found: Any = document
    for part in path.split("."):
        if found is None:
            return None
        found = found[part]
    return found


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return plain(value)
    text = "; ".join(value) if isinstance(value, list) else str(value)
    return f"'{text}" if text.startswith(_STARTS_A_FORMULA) else text
