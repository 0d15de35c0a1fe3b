"""Reports, histories and objectives as typed responses; CSV takes its values from them too.

Times are RFC 3339 in UTC. Numbers are neither rounded nor clamped; null means unknown or not
applicable, never zero.
"""

import hashlib
import json
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, Final, Self

from pydantic import AliasPath, BeforeValidator, ConfigDict, Field

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.error_budget import Reason, Status
from mm2slo_core.objectives.objective import Objective, slo_id
from mm2slo_core.quantity_text import decimal_text as plain_share
from mm2slo_core.reporting import report_entry, slo_report
from mm2slo_core.reporting.report_entry import (
    BudgetPart,
    BudgetReading,
    Confirmation,
    Count,
    Coverage,
    Figure,
    Incident,
    Instant,
    MaybeInstant,
    PairReading,
    PeriodComparison,
    ReportWindow,
    headline,
    json_part,
)
from mm2slo_core.reporting.slo_report import Cost
from mm2slo_report.rendering import report_text
from mm2slo_report.service_settings import References
from mm2slo_store.audit_document import AuditModel


class ResponseModel(AuditModel):
    """A part of a response.

    A field whose value has another name there has it as its `validation_alias`.
    """

    model_config = ConfigDict(serialize_by_alias=True)


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectiveIncident(Incident):
    """An incident in a list of several objectives."""

    id: str
    flow: str
    sli: Sli
    tier: str

    @classmethod
    def of(cls, cost: Cost) -> Self:
        objective, incident = cost.entry.objective, cost.incident
        return cls(
            id=cost.entry.id,
            flow=objective.flow.label,
            sli=objective.key.sli,
            tier=objective.key.tier,
            **{each.name: getattr(incident, each.name) for each in fields(Incident) if each.init},
        )


NO_REFERENCES: Final = References()


class FlowNames(ResponseModel):
    name: Annotated[str, Field(validation_alias="label")]
    slug: str
    source: str
    target: str


class EntrySli(ResponseModel):
    type: Sli
    tier: str
    name: str
    description: str
    method: Annotated[str, Field(description="events, or slices of time.")]
    unit: Annotated[str, Field(description="What an event is.")]
    threshold_seconds: float | None

    @classmethod
    def of(cls, key: SliKey) -> Self:
        described = report_text.sli_description(key)
        return cls(
            type=key.sli,
            tier=key.tier,
            name=report_text.sli_name(key),
            threshold_seconds=report_text.sli_threshold(key),
            **described._asdict(),
        )


class Events(ResponseModel):
    good: Count
    bad: Count
    total: Count
    unknown: Count
    excluded: Count


class EntryLinks(ResponseModel):
    self: str | None
    dashboard: str | None
    runbook: str | None
    prometheus: str | None


MaybeText = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""Null for the empty text."""


class ObjectiveEntry(ResponseModel):
    """One objective as of one instant."""

    id: str
    flow: FlowNames
    sli: EntrySli
    objective_ratio: float
    window: ReportWindow
    as_of: Instant
    status: Status
    status_reason: Reason
    status_pair: MaybeText
    is_current: bool
    stale_since: MaybeInstant
    sli_ratio: Figure
    events: Events
    budget: BudgetReading
    burn_rate: Annotated[dict[str, Figure], Field(description="By window.")]
    time_to_exhaustion_seconds: Figure
    projected_remaining_ratio: Annotated[Figure, Field(description="At the end of the window.")]
    alerts: tuple[PairReading, ...]
    coverage: Coverage
    trend_vs_previous_window: PeriodComparison | None
    audit: Confirmation | None
    owner: MaybeText
    links: EntryLinks
    spec_hash: Annotated[str, Field(description="Equal for equal objectives.")]
    warnings: tuple[str, ...]
    errors: tuple[str, ...]

    @classmethod
    def of(cls, entry: report_entry.Entry, references: References = NO_REFERENCES) -> Self:
        objective, service = entry.objective, references.service
        counts = ("good", "bad", "total", "unknown")
        return cls.model_validate(
            {
                "id": entry.id,
                "flow": objective.flow,
                "sli": EntrySli.of(objective.key),
                "objective_ratio": objective.target,
                "window": entry.window,
                "as_of": entry.as_of,
                "status": entry.status,
                "status_reason": entry.reason,
                "status_pair": entry.pair,
                "is_current": entry.is_current,
                "stale_since": entry.stale_since,
                "sli_ratio": entry.ratio,
                "events": {
                    **{name: getattr(entry.counts, name) for name in counts},
                    "excluded": entry.excluded.total,
                },
                "budget": entry.budget,
                "burn_rate": dict(entry.burn_rates),
                "time_to_exhaustion_seconds": entry.exhaustion_seconds,
                "projected_remaining_ratio": entry.projected_remaining,
                "alerts": entry.pairs,
                "coverage": entry.coverage,
                "trend_vs_previous_window": entry.before,
                "audit": entry.confirmation,
                "owner": objective.owner,
                "links": {
                    "self": None if service is None else f"{service}/slo/{entry.id}",
                    "dashboard": references.dashboard,
                    "runbook": references.runbook,
                    "prometheus": references.prometheus,
                },
                "spec_hash": _spec_hash(objective),
                "warnings": entry.warnings,
                "errors": entry.errors,
            }
        )


class ObjectiveDetail(ResponseModel):
    """One entry, with the budget spent by each day and incident."""

    entry: ObjectiveEntry
    days: tuple[BudgetPart, ...]
    incidents: tuple[Incident, ...]

    @classmethod
    def of(cls, detail: slo_report.EntryDetail, references: References = NO_REFERENCES) -> Self:
        entry = ObjectiveEntry.of(detail.entry, references)
        return cls(entry=entry, days=detail.days, incidents=detail.incidents)


class Headline(ResponseModel):
    """Numbers of objectives."""

    objectives: int
    breached: int
    at_risk: int
    no_data: int
    met: int
    idle: int
    stale: Annotated[int, Field(description="Of all; their status may be any but no_data.")]


class ObjectiveList(ResponseModel):
    """Entries, worst first."""

    as_of: Instant
    source: str
    time_zone: str
    window: Annotated[
        ReportWindow | None, Field(description="Null: each objective has its own window.")
    ]
    headline: Headline
    warnings: tuple[str, ...]
    entries: tuple[ObjectiveEntry, ...]

    @classmethod
    def of(
        cls, report: slo_report.Report, references: References = NO_REFERENCES, **more: Any
    ) -> Self:
        """*more* are fields of a subclass, or replace those of *report*."""
        return cls.model_validate(
            {
                "as_of": report.as_of,
                "source": report.source,
                "time_zone": report.zone,
                "window": report.window,
                "headline": headline(report.entries),
                "warnings": report.warnings,
                "entries": [ObjectiveEntry.of(each, references) for each in report.entries],
                **more,
            }
        )


class ObjectivePage(ObjectiveList):
    total: Annotated[int, Field(description="Of all pages.")]
    next: Annotated[str | None, Field(description="Cursor of the next page.")]


class ObjectiveReport(ObjectiveList):
    incidents: Annotated[
        tuple[ObjectiveIncident, ...], Field(description="The costliest of all objectives.")
    ]


class HistoryPoint(ResponseModel):
    """A step of a history."""

    start: Instant
    end: Instant
    good: Annotated[Count, Field(validation_alias=AliasPath("counts", "good"))]
    bad: Annotated[Count, Field(validation_alias=AliasPath("counts", "bad"))]
    total: Annotated[Count, Field(validation_alias=AliasPath("counts", "total"))]
    unknown: Annotated[Count, Field(validation_alias=AliasPath("counts", "unknown"))]
    samples: Annotated[int, Field(validation_alias=AliasPath("counts", "minutes"))]
    sli_ratio: Annotated[Figure, Field(validation_alias="ratio")]
    burn_rate: Figure
    remaining_ratio: Annotated[
        Figure,
        Field(
            validation_alias="remaining",
            description="Error budget of the whole requested time that remains after the step.",
        ),
    ]


class ObjectiveHistory(ResponseModel):
    """One objective over time."""

    id: str
    as_of: Instant
    start: Instant
    end: Instant
    step_seconds: float
    objective_ratio: float
    points: tuple[HistoryPoint, ...]

    @classmethod
    def of(cls, found: slo_report.IndicatorHistory) -> Self:
        return cls.model_validate(
            {
                "id": slo_id(found.objective.flow, found.objective.key),
                "as_of": found.as_of,
                "start": found.start,
                "end": found.end,
                "step_seconds": found.length / 1000,
                "objective_ratio": found.objective.target,
                "points": found.steps,
            }
        )


class ObjectiveAlerts(ResponseModel):
    """Window pairs of an objective."""

    id: str
    as_of: Instant
    status: Status
    status_reason: Reason
    status_pair: str | None
    burn_rate: dict[str, Figure]
    errors: tuple[str, ...]
    pairs: Annotated[tuple[PairReading, ...], Field(validation_alias="alerts")]


_DIGEST: Final = 12


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
