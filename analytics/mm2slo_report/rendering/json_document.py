"""Reports as JSON data; all other formats take their values from it.

Times are RFC 3339 in UTC, durations seconds, shares and budgets ratios; null means unknown.
"""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.objectives.quantity_text import plain as plain_share
from mm2slo_core.reporting.entry_order import headline
from mm2slo_report.rendering import sli_descriptions
from mm2slo_report.rendering.references import References
from mm2slo_report.rendering.value_format import finite, utc, whole

if TYPE_CHECKING:
    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.incidents import Cost
    from mm2slo_core.reporting.report_entry import (
        Comparison,
        Confirmation,
        Day,
        Entry,
        Incident,
        PairReading,
        ReportWindow,
    )
    from mm2slo_core.reporting.slo_report import Detail, Report

NO_REFERENCES: Final = References()
_DIGEST: Final = 12


def report_document(report: Report, references: References = NO_REFERENCES) -> dict[str, Any]:
    """A report with its entries, worst first."""
    return {
        "as_of": utc(report.as_of),
        "source": report.source,
        "time_zone": report.zone,
        "window": None if report.window is None else _window(report.window),
        "headline": headline(report.entries),
        "warnings": list(report.warnings),
        "entries": [entry_document(each, references) for each in report.entries],
    }


def cost_document(cost: Cost) -> dict[str, Any]:
    """An incident in a list of several objectives."""
    objective = cost.entry.objective
    return {
        "id": cost.entry.id,
        "flow": objective.flow.label,
        "sli": objective.key.sli.value,
        "tier": objective.key.tier,
        **_incident(cost.incident),
    }


def detail_document(detail: Detail, references: References = NO_REFERENCES) -> dict[str, Any]:
    """One entry, with the budget spent by each day and incident."""
    return {
        "entry": entry_document(detail.entry, references),
        "days": [_day(each) for each in detail.days],
        "incidents": [_incident(each) for each in detail.incidents],
    }


def entry_document(entry: Entry, references: References = NO_REFERENCES) -> dict[str, Any]:
    """One objective as of one instant."""
    objective, budget, cover = entry.objective, entry.budget, entry.coverage
    remaining = budget.remaining_minutes
    # Decimal gives 0.001 where floats give 0.0010000000000000009.
    exact = 1 - Decimal(repr(objective.target))
    return {
        "id": entry.id,
        "flow": {
            "name": objective.flow.label,
            "slug": objective.flow.slug,
            "source": objective.flow.source,
            "target": objective.flow.target,
        },
        "sli": _sli(objective),
        "objective": objective.target,
        "window": _window(entry.window),
        "as_of": utc(entry.as_of),
        "status": entry.status.value,
        "status_reason": entry.reason.value,
        "status_pair": entry.pair or None,
        "is_current": entry.is_current,
        "stale_since": None if entry.stale_since is None else utc(entry.stale_since),
        "sli_value": finite(entry.ratio),
        "events": {
            "good": whole(entry.counts.good),
            "bad": whole(entry.counts.bad),
            "total": whole(entry.counts.total),
            "unknown": whole(entry.counts.unknown),
            "excluded": whole(entry.excluded.total),
        },
        "budget": {
            "allowed_error_ratio": float(exact),
            "consumed": finite(budget.consumed),
            "remaining": finite(budget.remaining),
            "total_events": whole(budget.total_events),
            "remaining_events": whole(budget.remaining_events),
            "total_seconds": float(exact * Decimal(repr(budget.seconds))),
            "remaining_seconds": None if remaining is None else finite(remaining * 60),
            "is_estimate": budget.minutes_are_estimate,
        },
        "burn_rate": {name: finite(rate) for name, rate in entry.burn_rates.items()},
        "time_to_exhaustion_seconds": finite(entry.exhaustion_seconds),
        "projected_at_window_end": finite(entry.projected_remaining),
        "alerts": [_pair(each) for each in entry.pairs],
        "coverage": {
            "ratio": finite(cover.window),
            "last_hour": finite(cover.hour),
            "expected_samples": cover.expected_minutes,
            "samples": cover.minutes,
            "known_since": None if cover.known_since is None else utc(cover.known_since),
        },
        "trend_vs_previous_window": None if entry.before is None else _trend(entry, entry.before),
        "audit": None if entry.confirmation is None else _audit(entry.confirmation),
        "owner": objective.owner or None,
        "links": _links(entry, references),
        "spec_hash": _spec_hash(objective),
        "rules_version": references.rules_version,
        "warnings": list(entry.warnings),
        "errors": list(entry.errors),
    }


def _sli(objective: Objective) -> dict[str, Any]:
    key = objective.key
    described = sli_descriptions.sli_description(key)
    return {
        "type": key.sli.value,
        "tier": key.tier,
        "name": sli_descriptions.name(key),
        "description": described.description,
        "method": described.method,
        "unit": described.unit,
        "threshold": sli_descriptions.threshold(key),
    }


def _window(window: ReportWindow) -> dict[str, Any]:
    return {
        "name": window.name,
        "kind": window.kind.value,
        "duration_seconds": window.seconds,
        "start": utc(window.start),
        "end": utc(window.end),
    }


def _pair(pair: PairReading) -> dict[str, Any]:
    return {
        "name": pair.name,
        "severity": str(pair.severity),
        "long_seconds": pair.long_seconds,
        "short_seconds": pair.short_seconds,
        "long_burn_rate": finite(pair.long),
        "short_burn_rate": finite(pair.short),
        "threshold": finite(pair.factor),
        "state": pair.state.value,
        "since": None if pair.since is None else utc(pair.since),
    }


def _trend(entry: Entry, before: Comparison) -> dict[str, Any]:
    change = None if entry.ratio is None else finite(entry.ratio - before.ratio)
    return {
        "start": utc(before.start),
        "end": utc(before.end),
        "sli_value": finite(before.ratio),
        "remaining": finite(before.remaining),
        "sli_change": change,
        "coverage": finite(before.coverage),
    }


def _audit(found: Confirmation) -> dict[str, Any]:
    return {
        "audited_up_to": None if found.audited_up_to is None else utc(found.audited_up_to),
        "records": found.records,
        "faults": dict(found.faults),
        "loss_below": finite(found.loss_below),
        "sentence": found.sentence,
        "run_ids": list(found.run_ids),
    }


def _links(entry: Entry, references: References) -> dict[str, str | None]:
    service = references.service
    return {
        "self": None if service is None else f"{service}/slo/{entry.id}",
        "dashboard": references.dashboard,
        "runbook": references.runbook,
        "prometheus": references.prometheus,
    }


@lru_cache(maxsize=4096)
def _spec_hash(objective: Objective) -> str:
    """Hash of the objective: equal hashes mean equal objectives."""
    identity = (
        objective.flow.label,
        objective.key.sli.value,
        objective.key.tier,
        plain_share(objective.target),
        objective.window,
    )
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:_DIGEST]


def _day(day: Day) -> dict[str, Any]:
    return {
        "start": utc(day.start),
        "end": utc(day.end),
        "bad": whole(day.bad),
        "consumed": finite(day.consumed),
    }


def _incident(incident: Incident) -> dict[str, Any]:
    return {
        "start": utc(incident.start),
        "end": utc(incident.end),
        "duration_seconds": (incident.end - incident.start) / 1000,
        "bad": whole(incident.bad),
        "consumed": finite(incident.consumed),
        "equivalent_minutes": finite(incident.equivalent_minutes),
    }
