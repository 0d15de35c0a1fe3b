"""Strict parsing of query parameters; an error lists valid values."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mm2slo_core.config.suggestion import suggest
from mm2slo_core.objectives.quantity_text import parse_shorthand
from mm2slo_report.web.problem_details import invalid_parameter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from enum import StrEnum

    from mm2slo_core.topology import Flow

    E = TypeVar("E", bound=StrEnum)

INSTANTS: Final = ("2026-07-14T10:30:00Z", "2026-07-14T12:30:00+02:00")
INSTANT: Final = {"format": "date-time"}
"""JSON Schema for `parse_instant`."""
STEP: Final = {"pattern": "^[0-9]+[mhdw]$"}
"""JSON Schema for `parse_step`."""
PERIOD: Final = {"pattern": "^([0-9]+[mhdw]|[0-9]{4}(-(Q[1-4]|W[0-9]{2}|[0-9]{2}(-[0-9]{2})?))?)$"}
_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_SIGN_DECODED: Final = re.compile(r" (\d\d:\d\d)\Z", re.ASCII)
"""A `+` that was not escaped as `%2B` decodes to a space."""


def parse_instant(parameter: str, text: str, now: int | None = None) -> int:
    """Epoch ms of an RFC 3339 *text*. Raises ProblemError, also for instants after *now*."""
    value = _SIGN_DECODED.sub(r"+\1", text)
    if not _INSTANT.fullmatch(value):
        raise invalid_parameter(
            parameter, f"invalid instant {text!r}; expected RFC 3339 with a time zone", *INSTANTS
        )
    try:
        found = round(datetime.fromisoformat(value.upper()).timestamp() * 1000)
    except (ValueError, OverflowError):
        found = -1
    if found < 0:
        raise invalid_parameter(
            parameter, f"invalid instant {text!r}; expected a date since 1970", *INSTANTS
        )
    if now is not None and found > now:
        raise invalid_parameter(
            parameter, f"{text!r} is in the future; expected a past instant", *INSTANTS
        )
    return found


def parse_step(parameter: str, text: str) -> int:
    """Milliseconds of `5m`, `1h`, `1d`. Raises ProblemError."""
    seconds = parse_shorthand(text)
    if seconds is None:
        raise invalid_parameter(
            parameter,
            f"invalid step {text!r}; expected a multiple of 5m",
            "5m",
            "1h",
            "1d",
        )
    return round(seconds * 1000)


def parse_enum(parameter: str, given: Iterable[str], kind: type[E]) -> tuple[E, ...]:
    """Distinct members of *kind* in the comma-separated values. Raises ProblemError."""
    known = {each.value: each for each in kind}
    found: dict[E, None] = {}
    for text in _split(parameter, given, *known):
        if text not in known:
            close = suggest(text, known)
            hint = f"did you mean {close!r}?" if close else f"expected one of {', '.join(known)}"
            raise invalid_parameter(parameter, f"unknown {parameter} {text!r}; {hint}", *known)
        found[known[text]] = None
    return tuple(found)


def parse_flows(parameter: str, given: Iterable[str], known: Collection[Flow]) -> tuple[Flow, ...]:
    """The *known* flows named by label or slug. Raises ProblemError."""
    named = {name: flow for flow in known for name in (flow.label, flow.slug)}
    found: dict[Flow, None] = {}
    for text in _split(parameter, given, *sorted(named)[:20]):
        flow = named.get(text)
        if flow is None:
            close = suggest(text, named)
            hint = f"; did you mean {close!r}?" if close else ""
            raise invalid_parameter(parameter, f"unknown flow {text!r}{hint}", *sorted(named)[:20])
        found[flow] = None
    return tuple(found)


def enum_schema(kind: type[StrEnum]) -> dict[str, Any]:
    """JSON Schema for `parse_enum`: members of *kind*, separated by commas."""
    one = "|".join(each.value for each in kind)
    return {"type": "string", "pattern": f"^({one})(,({one}))*$"}


def _split(parameter: str, given: Iterable[str], *examples: str) -> list[str]:
    found = [part.strip() for each in given for part in each.split(",")]
    if not all(found):
        raise invalid_parameter(
            parameter, f"empty value of {parameter}; omit the parameter to select all", *examples
        )
    return found
