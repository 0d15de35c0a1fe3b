"""What requests ask for, read strictly: what cannot be taken is refused with what can."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mm2slo_core.config.nearest import nearest
from mm2slo_core.objectives.figures import parse_shorthand
from mm2slo_report.web.problems import refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from enum import StrEnum

    from mm2slo_core.topology import Flow

    E = TypeVar("E", bound=StrEnum)

INSTANTS: Final = ("2026-07-14T10:30:00Z", "2026-07-14T12:30:00+02:00")
INSTANT: Final = {"format": "date-time"}
"""JSON Schema of a text that `instant` reads."""
STEP: Final = {"pattern": "^[0-9]+[mhdw]$"}
"""Of one that `step` reads."""
PERIOD: Final = {"pattern": "^([0-9]+[mhdw]|[0-9]{4}(-(Q[1-4]|W[0-9]{2}|[0-9]{2}(-[0-9]{2})?))?)$"}
_INSTANT: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_SIGN_DECODED: Final = re.compile(r" (\d\d:\d\d)\Z", re.ASCII)
"""A `+` in an address means a space, where it was not written as `%2B`."""


def instant(parameter: str, text: str, now: int | None = None) -> int:
    """RFC 3339 as epoch ms. Raises Problem for other texts, and for what is after *now*."""
    words = _SIGN_DECODED.sub(r"+\1", text)
    if not _INSTANT.fullmatch(words):
        raise refused(parameter, f"{text!r} is no instant with a time zone (RFC 3339)", *INSTANTS)
    try:
        found = round(datetime.fromisoformat(words.upper()).timestamp() * 1000)
    except (ValueError, OverflowError):
        found = -1
    if found < 0:
        raise refused(parameter, f"{text!r} is no instant of a calendar since 1970", *INSTANTS)
    if now is not None and found > now:
        raise refused(parameter, f"{text!r} has not come yet: expected one that has", *INSTANTS)
    return found


def step(parameter: str, text: str) -> int:
    """`5m`, `1h`, `1d` in ms. Raises Problem."""
    seconds = parse_shorthand(text)
    if seconds is None:
        raise refused(parameter, f"{text!r} is no step of whole minutes", "5m", "1h", "1d")
    return round(seconds * 1000)


def words(parameter: str, given: Iterable[str], kind: type[E]) -> tuple[E, ...]:
    """Members of *kind*, once each; several may stand in one value, by commas. Raises Problem."""
    known = {each.value: each for each in kind}
    found: dict[E, None] = {}
    for text in _split(parameter, given, *known):
        if text not in known:
            close = nearest(text, known)
            hint = f"; did you mean {close!r}?" if close else ""
            raise refused(parameter, f"{text!r} is none of those there are{hint}", *known)
        found[known[text]] = None
    return tuple(found)


def flows(parameter: str, given: Iterable[str], known: Collection[Flow]) -> tuple[Flow, ...]:
    """Of *known*, those that are named by label or slug. Raises Problem."""
    named = {name: flow for flow in known for name in (flow.label, flow.slug)}
    found: dict[Flow, None] = {}
    for text in _split(parameter, given, *sorted(named)[:20]):
        flow = named.get(text)
        if flow is None:
            close = nearest(text, named)
            hint = f"; did you mean {close!r}?" if close else ""
            raise refused(parameter, f"{text!r} is no flow here{hint}", *sorted(named)[:20])
        found[flow] = None
    return tuple(found)


def listed(kind: type[StrEnum]) -> dict[str, Any]:
    """JSON Schema of a value of `words`: one member of *kind*, or several by commas."""
    one = "|".join(each.value for each in kind)
    return {"type": "string", "pattern": f"^({one})(,({one}))*$"}


def _split(parameter: str, given: Iterable[str], *examples: str) -> list[str]:
    found = [part.strip() for each in given for part in each.split(",")]
    if not all(found):
        raise refused(parameter, f"{parameter} names nothing: leave it out for all", *examples)
    return found
