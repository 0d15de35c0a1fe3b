"""The counters of service-level indicators in a page of an exporter.

Formats: Prometheus text 0.0.4 and OpenMetrics 1.0, which write a sample alike. Of a page that may
hold a hundred thousand series, only the lines of three families are looked at.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import (
    PROCESS_START_TIME_SECONDS,
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)
from mm2slo_core.reporting.history import Indicator, Tally
from mm2slo_core.sli import ALL, Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FAMILIES: Final = (
    SLI_GOOD_EVENTS_TOTAL.name,
    SLI_EVENTS_TOTAL.name,
    SLI_UNKNOWN_EVENTS_TOTAL.name,
)
_BEGUN: Final = PROCESS_START_TIME_SECONDS.name
_WANTED: Final = tuple(f"\n{name}".encode() for name in (*_FAMILIES, _BEGUN))
_SAMPLE: Final = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)[ \t]*"
    r'(?:\{(?P<labels>(?:[^"}]|"(?:[^"\\]|\\.)*")*)\}[ \t]*|(?<=[ \t]))'
    r"(?P<value>[^ \t#]+)(?:[ \t]+[-+0-9.eE]+)?[ \t]*(?:#.*)?\Z"
)
_LABEL: Final = re.compile(
    r'[ \t]*([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\[\\"n])*)"[ \t]*(?:,|\Z)'
)
_ESCAPE: Final = re.compile(r"\\(.)")
_UNESCAPED: Final = {"\\": "\\", '"': '"', "n": "\n"}
_END: Final = b"# EOF"
_SLIS: Final = {str(each): each for each in Sli}
_LONGEST: Final = 1 << 20
"""Bytes of a line: the rest of a page that has none is not gathered."""
_SHOWN: Final = 80


class InvalidExpositionError(Exception):
    """The page is no exposition, or not all of one; the text says how that shows."""


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says of the indicators."""

    tallies: Mapping[Indicator, Tally]
    started: int | None = None
    """When its process started, and with it every counter (epoch ms); None: it does not say."""
    left_out: int = 0
    """Indicators that are not known here, lack a counter, or whose counter is no count."""


def read_page(chunks: Iterable[bytes], *, openmetrics: bool = False) -> Page:
    """Read a page that comes in *chunks*, of which it keeps no more than one at a time.

    Raises InvalidExpositionError, also for a page that was cut off.
    """
    return _page(_lines(chunks, openmetrics=openmetrics))


def _lines(chunks: Iterable[bytes], *, openmetrics: bool) -> list[str]:
    """The lines that matter here, in no particular order."""
    found: list[str] = []
    rest, last, started = b"\n", b"", False
    for chunk in chunks:
        block = rest + chunk
        end = block.rfind(b"\n")
        started = started or _begins(block[:end])
        for wanted in _WANTED:
            at = block.find(wanted, 0, end)
            while at >= 0:
                stop = block.find(b"\n", at + 1)
                found.append(_text(block[at + 1 : stop]))
                at = block.find(wanted, stop, end)
        if end > 0:
            last = block[block.rfind(b"\n", 0, end) + 1 : end]
        rest = block[end:]
        if len(rest) > _LONGEST:
            raise InvalidExpositionError(f"a line is longer than {_LONGEST} bytes")
    if not started and rest == b"\n":
        raise InvalidExpositionError("the page is empty")
    # OpenMetrics says where it ends; the classic text at least ends its last line.
    if rest == b"\n" + _END:
        return found
    if rest != b"\n" or (openmetrics and last.rstrip(b"\r") != _END):
        raise InvalidExpositionError("the page ends too early")
    return found


def _begins(block: bytes) -> bool:
    """Whether the page has started; InvalidExpositionError when it starts as no exposition does."""
    first = block.lstrip()
    if not first:
        return False
    line = _text(first.partition(b"\n")[0])
    if not line.startswith("#"):
        _count(_sample(line)["value"])
    return True


def _page(lines: Iterable[str]) -> Page:
    found: defaultdict[Indicator, dict[str, float]] = defaultdict(dict)
    started, left_out = None, set()
    for line in lines:
        sample = _sample(line)
        name, labels = sample["name"], sample["labels"] or ""
        if name == _BEGUN:
            started = _milliseconds(_count(sample["value"]))
        if name not in _FAMILIES:
            continue
        indicator, value = _indicator(labels), _count(sample["value"])
        if indicator is None:
            left_out.add(labels)
            continue
        if name in found[indicator]:
            raise InvalidExpositionError(
                f"{name} is there twice for {indicator.flow} {indicator.key.sli}: expected the "
                "page of one exporter"
            )
        found[indicator][name] = value
    tallies = {
        each: tally for each, values in found.items() if (tally := _tally(values)) is not None
    }
    return Page(tallies, started, len(left_out) + len(found) - len(tallies))


def _sample(line: str) -> re.Match[str]:
    found = _SAMPLE.match(line)
    if found is None:
        raise InvalidExpositionError(f"a line is no sample: {line[:_SHOWN]!r}")
    return found


def _tally(values: Mapping[str, float]) -> Tally | None:
    """None unless all three are counts: one that is missing would read as a reset of all."""
    counts = [values.get(name, math.nan) for name in _FAMILIES]
    if not all(math.isfinite(each) and each >= 0 for each in counts):
        return None
    return Tally(*counts)


@lru_cache(maxsize=16384)
def _indicator(labels: str) -> Indicator | None:
    """Whose series it is; None for an indicator that is not known here.

    Raises InvalidExpositionError when *labels* are no labels.
    """
    named: dict[str, str] = {}
    at = 0
    while at < len(labels.rstrip()):
        label = _LABEL.match(labels, at)
        if label is None:
            raise InvalidExpositionError(f"these are no labels: {labels[:_SHOWN]!r}")
        named[label[1]] = _ESCAPE.sub(lambda escape: _UNESCAPED[escape[1]], label[2])
        at = label.end()
    source, target = named.get("source", ""), named.get("target", "")
    sli = _SLIS.get(named.get("sli", ""))
    if not source or not target or sli is None:
        return None
    return Indicator(Flow(source, target), SliKey(sli, named.get("tier") or ALL))


def _count(text: str) -> float:
    try:
        # What Python alone takes for a number is refused, too.
        return float(text.replace("_", "x"))
    except ValueError:
        raise InvalidExpositionError(f"{text[:_SHOWN]!r} is no number") from None


def _milliseconds(seconds: float) -> int | None:
    return round(seconds * 1000) if math.isfinite(seconds) else None


def _text(line: bytes) -> str:
    try:
        return line.rstrip(b"\r").decode()
    except UnicodeDecodeError:
        raise InvalidExpositionError(f"a line is no UTF-8: {line[:_SHOWN]!r}") from None
