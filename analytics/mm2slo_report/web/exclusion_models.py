"""Planned maintenance as typed requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from mm2slo_core.objectives.exclusion import ExclusionState, Mark
from mm2slo_core.objectives.exclusion_document import MAX_REASON_LENGTH, exclusion_document
from mm2slo_report.rendering.response_model import Instant, MaybeInstant, ResponseModel
from mm2slo_report.rendering.value_format import utc

if TYPE_CHECKING:
    from mm2slo_core.objectives import exclusion


class ExclusionRequest(BaseModel):
    """Planned maintenance to add."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    flows: Annotated[
        tuple[Annotated[str, Field(max_length=200)], ...],
        Field(min_length=1, max_length=100, description="Patterns of labels."),
    ]
    start: Annotated[str, Field(alias="from", json_schema_extra={"format": "date-time"})]
    end: Annotated[str, Field(alias="to", json_schema_extra={"format": "date-time"})]
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON_LENGTH)]
    silence: Annotated[
        bool | None,
        Field(
            description="Whether to create a silence in Alertmanager; default: "
            "alerting.maintenance.silence."
        ),
    ] = None


class Exclusion(ResponseModel):
    id: str
    state: ExclusionState
    flows: Annotated[tuple[str, ...], Field(description="Patterns of labels.")]
    start: Annotated[Instant, Field(alias="from")]
    end: Annotated[Instant, Field(alias="to")]
    reason: str
    added_by: str
    added_at: Instant
    removed_by: str | None
    removed_at: MaybeInstant
    mark: Annotated[
        Mark | None, Field(description="Why reports and burn rules exclude different times.")
    ]
    silence: Annotated[str | None, Field(description="Id in Alertmanager.")]

    @classmethod
    def of(cls, found: exclusion.Exclusion, now: int, **more: Any) -> Self:
        """*more* are fields of a subclass."""
        return cls.model_validate({**exclusion_document(found, now, utc), **more})


class ExclusionList(ResponseModel):
    exclusions: tuple[Exclusion, ...]


class Outcome(ResponseModel):
    """Effects outside of reports, one sentence each."""

    done: tuple[str, ...]
    problems: tuple[str, ...]


class ChangedExclusion(Exclusion):
    effects: Outcome
