"""Planned maintenance as typed responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field

from mm2slo_core.objectives.exclusion import ExclusionState, Mark
from mm2slo_core.objectives.exclusion_document import exclusion_document
from mm2slo_report.rendering.response_model import Instant, MaybeInstant, ResponseModel
from mm2slo_report.rendering.value_format import utc

if TYPE_CHECKING:
    from mm2slo_core.objectives import exclusion


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
