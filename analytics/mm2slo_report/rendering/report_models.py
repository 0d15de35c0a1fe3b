"""Reports, details and histories as typed responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AliasPath, Field

from mm2slo_core.objectives.slo_ids import slo_id
from mm2slo_core.objectives.slo_status import Reason, Status
from mm2slo_core.reporting.entry_order import headline
from mm2slo_core.sli_counters import Sli
from mm2slo_report.rendering.entry_models import NO_REFERENCES, Entry, Window, WindowPair
from mm2slo_report.rendering.response_model import Count, Figure, Instant, ResponseModel

if TYPE_CHECKING:
    from mm2slo_core.reporting import slo_report
    from mm2slo_core.reporting.incidents import Cost
    from mm2slo_report.rendering.references import References


class Incident(ResponseModel):
    start: Instant
    end: Instant
    duration_seconds: float
    bad_events: Annotated[Count, Field(validation_alias="bad")]
    consumed_ratio: Annotated[
        Figure, Field(validation_alias="consumed", description="Of the budget.")
    ]
    equivalent_minutes: Annotated[Figure, Field(description="Of total outage that cost as much.")]


class ObjectiveIncident(Incident):
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
            **Incident.model_validate(cost.incident).model_dump(),
        )


class Day(ResponseModel):
    """A part of the window; shorter than a day with less than two days of data."""

    start: Instant
    end: Instant
    bad_events: Annotated[Count, Field(validation_alias="bad")]
    consumed_ratio: Annotated[Figure, Field(validation_alias="consumed")]


class Detail(ResponseModel):
    """One entry, with the budget spent by each day and incident."""

    entry: Entry
    days: tuple[Day, ...]
    incidents: tuple[Incident, ...]

    @classmethod
    def of(cls, detail: slo_report.Detail, references: References = NO_REFERENCES) -> Self:
        return cls.model_validate(
            {
                "entry": Entry.of(detail.entry, references),
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
    window: Annotated[Window | None, Field(description="Null: each objective has its own window.")]
    headline: Headline
    warnings: tuple[str, ...]
    entries: tuple[Entry, ...]

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
                "entries": [Entry.of(each, references) for each in report.entries],
                **more,
            }
        )


class ObjectivePage(ObjectiveList):
    total: Annotated[int, Field(description="Of all pages.")]
    next: Annotated[str | None, Field(description="Cursor of the next page.")]


class Report(ObjectiveList):
    incidents: Annotated[
        tuple[ObjectiveIncident, ...], Field(description="The costliest of all objectives.")
    ]


class Point(ResponseModel):
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


class History(ResponseModel):
    """One objective over time."""

    id: str
    as_of: Instant
    start: Instant
    end: Instant
    step_seconds: float
    objective_ratio: float
    points: tuple[Point, ...]

    @classmethod
    def of(cls, found: slo_report.History) -> Self:
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


class Alerts(ResponseModel):
    """Window pairs of an objective."""

    id: str
    as_of: Instant
    status: Status
    status_reason: Reason
    status_pair: str | None
    burn_rate: dict[str, Figure]
    errors: tuple[str, ...]
    pairs: Annotated[tuple[WindowPair, ...], Field(validation_alias="alerts")]
