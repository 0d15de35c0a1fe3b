"""Reports, histories and objectives as typed responses; CSV takes its values from them too.

Times are RFC 3339 in UTC. Numbers are neither rounded nor clamped; null means unknown or not
applicable, never zero.
"""

import hashlib
import json
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, Final, Self

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from mm2slo_core.indicators.sli_counters import Sli, SliKey
from mm2slo_core.objectives.error_budget import Reason, Status
from mm2slo_core.objectives.objective import Objective, Severity, slo_id
from mm2slo_core.quantity_text import decimal_text as plain_share
from mm2slo_core.reporting import report_entry, slo_report
from mm2slo_core.reporting.report_entry import PairState, WindowKind, headline
from mm2slo_core.reporting.slo_report import Cost
from mm2slo_report.rendering import report_text
from mm2slo_report.rendering.report_text import finite_or_none, int_if_whole, utc_text
from mm2slo_report.service_settings import References


class ResponseModel(BaseModel):
    """A part of a response, made from a dictionary or an object with the same attributes.

    A field whose value has another name there has it as its `validation_alias`.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        validate_by_name=True,
        json_schema_serialization_defaults_required=True,
    )


def _time_text(at: int | str | None) -> str | None:
    return utc_text(at) if isinstance(at, int) else at


_AsText = BeforeValidator(_time_text)
_DateTime = Field(json_schema_extra={"format": "date-time"})

Instant = Annotated[str, _AsText, _DateTime]
"""From epoch ms."""


def _finite_or_same(value: float | None) -> float | None:
    return finite_or_none(value) if isinstance(value, float) else value


Figure = Annotated[float | None, BeforeValidator(_finite_or_same)]
"""Null for NaN and infinities."""


def _whole_or_same(value: float | None) -> float | int | None:
    return int_if_whole(value) if isinstance(value, float) else value


Count = Annotated[int | float | None, BeforeValidator(_whole_or_same)]
"""A number of events or records; a fraction comes from averaged replicas."""


class BudgetIncident(ResponseModel):
    start: Instant
    end: Instant
    duration_seconds: float
    bad_events: Annotated[Count, Field(validation_alias="bad")]
    consumed_ratio: Annotated[
        Figure, Field(validation_alias="consumed", description="Of the budget.")
    ]
    equivalent_minutes: Annotated[Figure, Field(description="Of total outage that cost as much.")]


class ObjectiveIncident(BudgetIncident):
    """An incident in a list of several objectives."""

    id: str
    flow: str
    sli: Sli
    tier: str

    @classmethod
    def of(cls, cost: Cost) -> Self:
        objective = cost.entry.objective
        return cls(
            id=cost.entry.id,
            flow=objective.flow.label,
            sli=objective.key.sli,
            tier=objective.key.tier,
            **BudgetIncident.model_validate(cost.incident).model_dump(),
        )


class BudgetDay(ResponseModel):
    """A part of the window; shorter than a day with less than two days of data."""

    start: Instant
    end: Instant
    bad_events: Annotated[Count, Field(validation_alias="bad")]
    consumed_ratio: Annotated[Figure, Field(validation_alias="consumed")]


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


class SloWindow(ResponseModel):
    name: str
    kind: WindowKind
    duration_seconds: Annotated[
        float,
        Field(
            validation_alias="seconds",
            description="Nominal: of the whole month in a running month.",
        ),
    ]
    start: Instant
    end: Instant


class Events(ResponseModel):
    good: Count
    bad: Count
    total: Count
    unknown: Count
    excluded: Count


class EntryBudget(ResponseModel):
    """The error budget of the whole window."""

    allowed_error_ratio: float
    consumed_ratio: Figure
    remaining_ratio: Annotated[Figure, Field(description="Negative if overspent.")]
    total_events: Count
    remaining_events: Count
    total_seconds: Annotated[float, Field(description="Of total outage.")]
    remaining_seconds: Figure
    is_estimate: Annotated[bool, Field(description="Whether the seconds are estimated.")]


MaybeInstant = Annotated[str | None, _AsText]


class BurnRatePair(ResponseModel):
    """A pair burns if both windows burn faster than the threshold."""

    name: str
    severity: Severity
    long_seconds: float
    short_seconds: float
    long_burn_rate: Annotated[Figure, Field(validation_alias="long")]
    short_burn_rate: Annotated[Figure, Field(validation_alias="short")]
    threshold: Annotated[float, Field(validation_alias="factor", description="A burn rate.")]
    state: PairState
    since: MaybeInstant


class EntryCoverage(ResponseModel):
    ratio: Annotated[Figure, Field(validation_alias="window")]
    last_hour_ratio: Annotated[Figure, Field(validation_alias="hour")]
    expected_samples: Annotated[int, Field(validation_alias="expected_minutes")]
    samples: Annotated[int, Field(validation_alias="minutes")]
    known_since: MaybeInstant


class Trend(ResponseModel):
    """The previous window, and the change since."""

    start: Instant
    end: Instant
    sli_ratio: Figure
    sli_ratio_change: Figure
    remaining_ratio: Figure
    coverage_ratio: Figure


class EntryAudit(ResponseModel):
    """Audits of the flow in the window."""

    audited_up_to: MaybeInstant
    records: int
    faults: dict[str, int]
    loss_below_ratio: Annotated[
        Figure, Field(validation_alias="loss_below", description="With 95 % confidence.")
    ]
    sentence: str
    run_ids: tuple[str, ...]


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
    window: SloWindow
    as_of: Instant
    status: Status
    status_reason: Reason
    status_pair: MaybeText
    is_current: bool
    stale_since: MaybeInstant
    sli_ratio: Figure
    events: Events
    budget: EntryBudget
    burn_rate: Annotated[dict[str, Figure], Field(description="By window.")]
    time_to_exhaustion_seconds: Figure
    projected_remaining_ratio: Annotated[Figure, Field(description="At the end of the window.")]
    alerts: tuple[BurnRatePair, ...]
    coverage: EntryCoverage
    trend_vs_previous_window: Trend | None
    audit: EntryAudit | None
    owner: MaybeText
    links: EntryLinks
    spec_hash: Annotated[str, Field(description="Equal for equal objectives.")]
    rules_version: str | None
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
                "budget": _budget(entry),
                "burn_rate": dict(entry.burn_rates),
                "time_to_exhaustion_seconds": entry.exhaustion_seconds,
                "projected_remaining_ratio": entry.projected_remaining,
                "alerts": entry.pairs,
                "coverage": entry.coverage,
                "trend_vs_previous_window": _trend(entry, entry.before),
                "audit": entry.confirmation,
                "owner": objective.owner,
                "links": {
                    "self": None if service is None else f"{service}/slo/{entry.id}",
                    "dashboard": references.dashboard,
                    "runbook": references.runbook,
                    "prometheus": references.prometheus,
                },
                "spec_hash": _spec_hash(objective),
                "rules_version": references.rules_version,
                "warnings": entry.warnings,
                "errors": entry.errors,
            }
        )


class ObjectiveDetail(ResponseModel):
    """One entry, with the budget spent by each day and incident."""

    entry: ObjectiveEntry
    days: tuple[BudgetDay, ...]
    incidents: tuple[BudgetIncident, ...]

    @classmethod
    def of(cls, detail: slo_report.EntryDetail, references: References = NO_REFERENCES) -> Self:
        return cls.model_validate(
            {
                "entry": ObjectiveEntry.of(detail.entry, references),
                "days": detail.days,
                "incidents": detail.incidents,
            }
        )


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
        SloWindow | None, Field(description="Null: each objective has its own window.")
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
    pairs: Annotated[tuple[BurnRatePair, ...], Field(validation_alias="alerts")]


_DIGEST: Final = 12


def _budget(entry: report_entry.Entry) -> dict[str, Any]:
    budget, remaining = entry.budget, entry.budget.remaining_minutes
    # Decimal gives 0.001 where floats give 0.0010000000000000009.
    exact = 1 - Decimal(repr(entry.objective.target))
    return {
        "allowed_error_ratio": float(exact),
        "consumed_ratio": budget.consumed,
        "remaining_ratio": budget.remaining,
        "total_events": budget.total_events,
        "remaining_events": budget.remaining_events,
        "total_seconds": float(exact * Decimal(repr(budget.seconds))),
        "remaining_seconds": None if remaining is None else remaining * 60,
        "is_estimate": budget.minutes_are_estimate,
    }


def _trend(
    entry: report_entry.Entry, before: report_entry.PeriodComparison | None
) -> dict[str, Any] | None:
    if before is None:
        return None
    return {
        "start": before.start,
        "end": before.end,
        "sli_ratio": before.ratio,
        "sli_ratio_change": None if entry.ratio is None else entry.ratio - before.ratio,
        "remaining_ratio": before.remaining,
        "coverage_ratio": before.coverage,
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
