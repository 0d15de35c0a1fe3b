"""Reports as Markdown (CommonMark with GitHub's tables) and as CSV (RFC 4180).

CSV has one row per objective and period, with every digit.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, Final

from pydantic import TypeAdapter

from mm2slo_core.catalogue.prometheus_series import WINDOW_SECONDS
from mm2slo_core.quantity_text import share_text, spent_share_text
from mm2slo_core.reporting.report_entry import Entry
from mm2slo_core.reporting.slo_report import Cost, Report
from mm2slo_report.rendering import report_text
from mm2slo_report.rendering.report_models import ObjectiveEntry, ObjectiveIncident
from mm2slo_report.rendering.report_text import (
    DEFINITIONS,
    burn_rate_text,
    count_text,
    duration_text,
    every_digit,
    moment_text,
    percent_text,
    zone_of,
)

_MARKUP: Final = re.compile(r"([\\`*_\[\]<|~#&!$])")
_BREAKS: Final = re.compile(r"\s+")
_LINKS: Final = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp|www)(?=[:.])")

_COLUMNS: Final = (
    "Status", "Flow", "SLI", "Objective", "Measured", "Bad events", "Events",
    "Remaining budget", "Burn rate (1h)", "Exhausted", "Coverage", "Previous period",
)  # fmt: skip


def as_markdown(report: Report, costs: Sequence[Cost] = ()) -> str:
    """Summary, table of objectives (worst first), incidents, flows and definitions."""
    zone = zone_of(report.zone)
    parts = [
        "# Service level objectives",
        f"**{report_text.verdict_text(report)}**",
        (
            f"{report_text.status_counts(report)}. "
            f"{escaped(report_text.period_text(report, zone))}, "
            f"as of {moment_text(report.as_of, zone)}. Figures from {escaped(report.source)}."
        ),
        *(f"> {escaped(each)}" for each in report.warnings),
    ]
    if report.entries:
        parts += ["## Objectives, worst first", _table(_COLUMNS, map(_row, report.entries))]
    if costs:
        parts += ["## Costliest incidents", _incidents(costs, zone)]
    for label in sorted({each.objective.flow.label for each in report.entries}):
        own = [each for each in report.entries if each.objective.flow.label == label]
        parts += [f"## {escaped(label)}", *_flow(own)]
    parts.append("## Definitions")
    parts.append("\n".join(f"- **{term}**: {meaning}" for term, meaning in DEFINITIONS))
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """*text* on one line, with markup, links and cell separators escaped."""
    one_line = _BREAKS.sub(" ", text).strip()
    plain = _LINKS.sub(lambda found: f"{found[0]}\u200b", _MARKUP.sub(r"\\\1", one_line))
    # Mentions such as @here have no escape: a zero-width space keeps them from notifying.
    return plain.replace("@", "@\u200b")


def _row(entry: Entry) -> tuple[str, ...]:
    objective = entry.objective
    return (
        report_text.status_text(entry.status),
        escaped(objective.flow.label),
        escaped(report_text.sli_name(objective.key)),
        percent_text(objective.target),
        share_text(entry.ratio),
        count_text(entry.counts.bad),
        count_text(entry.counts.total),
        report_text.budget_left(entry),
        burn_rate_text(entry.burn_rates.get("1h")),
        report_text.exhaustion_text(entry),
        share_text(entry.coverage.window),
        report_text.trend_text(entry),
    )


def _incidents(costs: Iterable[Cost], zone: tzinfo) -> str:
    rows = (
        (
            escaped(entry.objective.flow.label),
            escaped(report_text.sli_name(entry.objective.key)),
            moment_text(each.start, zone),
            duration_text((each.end - each.start) / 1000),
            count_text(each.bad),
            spent_share_text(each.consumed),
            f"{each.equivalent_minutes:.3g}",
        )
        for entry, each in costs
    )
    columns = ("Flow", "SLI", "Start", "Duration", "Bad events", "Budget spent", "Outage minutes")
    return _table(columns, rows)


def _flow(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        points = [
            (
                f"**{escaped(report_text.sli_name(entry.objective.key))}**: "
                f"{report_text.status_text(entry.status)}, "
                f"{report_text.reason_text(entry)}"
            ),
            (
                f"{count_text(entry.counts.good)} good, {count_text(entry.counts.bad)} bad, "
                f"{count_text(entry.counts.unknown)} unknown, "
                f"{count_text(entry.excluded.total)} excluded"
            ),
        ]
        if entry.objective.owner:
            points.append(f"owner {escaped(entry.objective.owner)}")
        if entry.confirmation is not None:
            points.append(escaped(entry.confirmation.sentence))
        points += [escaped(each) for each in (*entry.warnings, *entry.errors)]
        yield f"- {'; '.join(dict.fromkeys(points))}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    found = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in found)


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
_INCIDENTS: Final = TypeAdapter(ObjectiveIncident)
_IDENTITY: Final = frozenset({"id", "flow", "sli", "tier"})

COLUMNS: Final = (*_PATHS, "record", *_INCIDENT)
"""The order is stable; new columns go last."""
# OWASP, "CSV Injection". Numbers are written before this applies, so negative ones stay numbers.
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
        document = ObjectiveEntry.of(entry).model_dump(mode="json")
        row = [_cell(_at(document, path)) for path in _PATHS.values()]
        writer.writerow([*row, "objective", *("" for _ in _INCIDENT)])
    for cost in costs:
        document = _INCIDENTS.dump_python(ObjectiveIncident.of(cost), mode="json")
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
        return every_digit(value)
    text = "; ".join(value) if isinstance(value, list) else str(value)
    return f"'{text}" if text.startswith(_STARTS_A_FORMULA) else text
