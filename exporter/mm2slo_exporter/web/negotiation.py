"""Which format and encoding a client gets: RFC 9110, sections 12.4 and 12.5."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_exporter.exposition import Encoding, Format

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_QUALITY = re.compile(r"(0(\.[0-9]{0,3})?|1(\.0{0,3})?)\Z")
_OFFERS = {
    Format.OPENMETRICS: ("application", "openmetrics-text", "1.0.0"),
    Format.CLASSIC: ("text", "plain", "0.0.4"),
}
_EXACT = 2
# Quality, how exactly the range names the format, and our own liking where both are equal.
_Rank = tuple[float, int, int]


@dataclass(frozen=True, slots=True)
class _Choice:
    name: str
    parameters: Mapping[str, str]
    quality: float


def choose_format(accept: str | None) -> Format | None:
    """The format for an Accept header; None when none that is offered is acceptable.

    The classic text is what a client gets that accepts anything, OpenMetrics what one gets that
    names both alike.
    """
    choices = list(_choices(accept or "*/*"))
    ranked = {fmt: rank for fmt in _OFFERS if (rank := _rank(fmt, choices)) is not None}
    return max(ranked, key=ranked.__getitem__, default=None)


def _rank(fmt: Format, choices: list[_Choice]) -> _Rank | None:
    matches = [(exactness, choice.quality) for choice in choices
               if (exactness := _exactness(fmt, choice)) is not None]  # fmt: skip
    if not matches:
        return None
    exactness, quality = max(matches)  # the most exact range decides, not the most generous
    if not quality:
        return None
    preferred = Format.OPENMETRICS if exactness >= _EXACT else Format.CLASSIC
    return quality, exactness, int(fmt is preferred)


def _exactness(fmt: Format, choice: _Choice) -> int | None:
    main, sub, version = _OFFERS[fmt]
    wanted_main, _, wanted_sub = choice.name.partition("/")
    if choice.parameters.get("version", version) != version:
        return None
    if choice.parameters.get("charset", "utf-8").lower() != "utf-8":
        return None
    if (wanted_main, wanted_sub) == (main, sub):
        return _EXACT + ("version" in choice.parameters)
    if (wanted_main, wanted_sub) == (main, "*"):
        return 1
    return 0 if (wanted_main, wanted_sub) == ("*", "*") else None


def choose_encoding(accept_encoding: str | None) -> Encoding | None:
    """The encoding for an Accept-Encoding header; None when neither is acceptable.

    Without the header nothing is encoded; gzip wins where both are liked equally.
    """
    if accept_encoding is None:
        return Encoding.IDENTITY
    named = {choice.name: choice.quality for choice in _choices(accept_encoding)}
    gzip = named.get("gzip", named.get("x-gzip", named.get("*", 0.0)))
    # Identity is acceptable unless it is refused, but a coding that was asked for goes first.
    identity = named.get("identity")
    if identity is None:
        refused = named.get("*", 1.0) == 0.0
        return Encoding.GZIP if gzip else (None if refused else Encoding.IDENTITY)
    if not gzip and not identity:
        return None
    return Encoding.GZIP if gzip >= identity else Encoding.IDENTITY


def _choices(header: str) -> Iterator[_Choice]:
    for part in header.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        if not name:
            continue
        parameters = {}
        for item in rest:
            key, _, value = item.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"')
        quality = parameters.pop("q", "1")
        # A malformed weight says nothing reliable, so the choice is left out.
        if _QUALITY.match(quality):
            yield _Choice(name.lower(), parameters, float(quality))
