"""Values of reports as they appear in JSON: instants, figures and counts.

A part of a report is a dataclass whose fields have these types; its `serialization_alias` is the
name in JSON. Numbers are neither rounded nor clamped; null means unknown or not applicable.
"""

from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainSerializer, with_config


@lru_cache(maxsize=4096)
def utc_text(at: int) -> str:
    """*at* (epoch ms) as RFC 3339 in UTC: `2026-07-14T10:30:00Z`, with ms if not zero."""
    moment = datetime.fromtimestamp(at / 1000, UTC).replace(tzinfo=None)
    precision = "milliseconds" if at % 1000 else "seconds"
    return f"{moment.isoformat(timespec=precision)}Z"


def int_if_whole(value: float | None) -> float | int | None:
    """*value*, as an int if whole; None for NaN and infinities."""
    if value is None or not isfinite(value):
        return None
    return int(value) if value == int(value) else value


def _finite_or_none(value: float | None) -> float | None:
    # JSON (RFC 8259, section 6) has neither NaN nor infinities.
    return None if value is None or not isfinite(value) else float(value)


def _seconds_of_minutes(minutes: float | None) -> float | None:
    return None if minutes is None else _finite_or_none(minutes * 60)


def _maybe_utc_text(at: int | None) -> str | None:
    return None if at is None else utc_text(at)


Instant = Annotated[
    int,
    PlainSerializer(utc_text, return_type=str),
    Field(json_schema_extra={"format": "date-time"}),
]
"""Epoch ms."""

MaybeInstant = Annotated[int | None, PlainSerializer(_maybe_utc_text, return_type=str | None)]

Seconds = Annotated[float, PlainSerializer(float, return_type=float)]

Minutes = Annotated[float | None, PlainSerializer(_seconds_of_minutes, return_type=float | None)]
"""Seconds in JSON."""

_finite = PlainSerializer(_finite_or_none, return_type=float | None)
Figure = Annotated[float | None, _finite]
"""Null for NaN and infinities."""
KnownFigure = Annotated[float, _finite]

_whole = PlainSerializer(int_if_whole, return_type=int | float | None)
Count = Annotated[float | None, _whole]
"""A number of events or records; a fraction comes from averaged replicas."""
KnownCount = Annotated[float, _whole]


def _without_defaults(schema: dict[str, Any]) -> None:
    # A response always has all its fields, so that defaults would only mislead its readers.
    for each in schema["properties"].values():
        each.pop("default", None)


json_part = with_config(
    ConfigDict(
        extra="forbid",
        serialize_by_alias=True,
        json_schema_serialization_defaults_required=True,
        json_schema_extra=_without_defaults,
    )
)
"""Decorates a dataclass that is a part of a response."""
