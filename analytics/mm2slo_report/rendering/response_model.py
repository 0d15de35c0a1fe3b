"""The base of typed responses, and the types of their values.

Times are RFC 3339 in UTC. Numbers are neither rounded nor clamped; null means unknown or not
applicable, never zero.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mm2slo_report.rendering.value_format import finite, utc, whole


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
    return utc(at) if isinstance(at, int) else at


def _finite_or_same(value: float | None) -> float | None:
    return finite(value) if isinstance(value, float) else value


def _whole_or_same(value: float | None) -> float | int | None:
    return whole(value) if isinstance(value, float) else value


_AsText = BeforeValidator(_time_text)
_DateTime = Field(json_schema_extra={"format": "date-time"})
Instant = Annotated[str, _AsText, _DateTime]
"""From epoch ms."""
MaybeInstant = Annotated[str | None, _AsText]
Figure = Annotated[float | None, BeforeValidator(_finite_or_same)]
"""Null for NaN and infinities."""
Count = Annotated[int | float | None, BeforeValidator(_whole_or_same)]
"""A number of events or records; a fraction comes from averaged replicas."""
MaybeText = Annotated[str | None, BeforeValidator(lambda text: text or None)]
"""Null for the empty text."""
