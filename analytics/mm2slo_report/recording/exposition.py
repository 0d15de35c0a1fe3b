"""Parses the SLI counters of an exporter's metrics page.

Formats: Prometheus text 0.0.4 and OpenMetrics 1.0, which share the syntax of samples. A page may
hold a hundred thousand series; only the lines of the needed families are parsed.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mm2slo_core.catalogue import (
    PROCESS_START_TIME_SECONDS,
    SLI_EVENTS_TOTAL,
    SLI_GOOD_EVENTS_TOTAL,
    SLI_UNKNOWN_EVENTS_TOTAL,
)
from mm2slo_core.reporting.step_counts import Indicator, Tally
from mm2slo_core.sli_counters import ALL, Sli, SliKey
from mm2slo_core.topology import Flow
from mm2slo_report.sample_line import parse_sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prometheus_client.samples import Sample

_FAMILIES: Final = (
    SLI_GOOD_EVENTS_TOTAL.name,
    SLI_EVENTS_TOTAL.name,
    SLI_UNKNOWN_EVENTS_TOTAL.name,
)
_START_TIME: Final = PROCESS_START_TIME_SECONDS.name
_WANTED: Final = tuple(f"\n{name}".encode() for name in (*_FAMILIES, _START_TIME))
_END: Final = b"# EOF"
_SLIS: Final = {str(each): each for each in Sli}
_MAX_LINE: Final = 1 << 20
"""Maximum bytes of a line."""
_MAX_QUOTE: Final = 80


class InvalidExpositionError(Exception):
    """The page is not a valid or complete exposition; the text says why."""


@dataclass(frozen=True, slots=True)
class Page:
    """The SLI counters of a page."""

    tallies: Mapping[Indicator, Tally]
    started: int | None = None
    """Process start time (epoch ms), at which all counters were 0; None: not in the page."""
    left_out: int = 0
    """Indicators that are unknown, lack a counter, or have an invalid value."""


def read_page(chunks: Iterable[bytes], *, openmetrics: bool = False) -> Page:
    """Parse a page from *chunks*, holding one at a time.

    Raises InvalidExpositionError, also for a truncated page.
    """
    return _page(_lines(chunks, openmetrics=openmetrics))


def _lines(chunks: Iterable[bytes], *, openmetrics: bool) -> list[str]:
    """The lines of the needed families, in no particular order."""
    found: list[str] = []
    rest, last, started = b"\n", b"", False
    for chunk in chunks:
        block = rest + chunk
        end = block.rfind(b"\n")
        started = started or _has_started(block[:end])
        for wanted in _WANTED:
            at = block.find(wanted, 0, end)
            while at >= 0:
                stop = block.find(b"\n", at + 1)
                found.append(_text(block[at + 1 : stop]))
                at = block.find(wanted, stop, end)
        if end > 0:
            last = block[block.rfind(b"\n", 0, end) + 1 : end]
        rest = block[end:]
        if len(rest) > _MAX_LINE:
            raise InvalidExpositionError(f"a line is longer than {_MAX_LINE} bytes")
    if not started and rest == b"\n":
        raise InvalidExpositionError("the page is empty")
    # OpenMetrics marks its end; the classic format at least terminates its last line.
    if rest == b"\n" + _END:
        return found
    if rest != b"\n" or (openmetrics and last.rstrip(b"\r") != _END):
        raise InvalidExpositionError("the page is truncated")
    return found


def _has_started(block: bytes) -> bool:
    """Whether *block* holds the first line. Raises InvalidExpositionError if that is invalid."""
    first = block.lstrip()
    if not first:
        return False
    line = _text(first.partition(b"\n")[0])
    if not line.startswith("#"):
        _sample(line)
    return True


def _page(lines: Iterable[str]) -> Page:
    found: defaultdict[Indicator, dict[str, float]] = defaultdict(dict)
    started, left_out = None, set()
    for line in lines:
        sample = _sample(line)
        name = sample.name
        if name == _START_TIME:
            started = _milliseconds(sample.value)
        if name not in _FAMILIES:
            continue
        indicator = _indicator(sample.labels)
        if indicator is None:
            left_out.add(frozenset(sample.labels.items()))
            continue
        if name in found[indicator]:
            raise InvalidExpositionError(
                f"duplicate series of {name} for {indicator.flow} {indicator.key.sli}; expected "
                "the page of a single exporter"
            )
        found[indicator][name] = sample.value
    tallies = {
        each: tally for each, values in found.items() if (tally := _tally(values)) is not None
    }
    return Page(tallies, started, len(left_out) + len(found) - len(tallies))


def _sample(line: str) -> Sample:
    try:
        return parse_sample(line)
    except ValueError:
        raise InvalidExpositionError(f"invalid sample line: {line[:_MAX_QUOTE]!r}") from None


def _tally(values: Mapping[str, float]) -> Tally | None:
    """None unless all three are valid: a missing one would look like a counter reset."""
    counts = [values.get(name, math.nan) for name in _FAMILIES]
    if not all(math.isfinite(each) and each >= 0 for each in counts):
        return None
    return Tally(*counts)


def _indicator(labels: Mapping[str, str]) -> Indicator | None:
    """The indicator of a series; None if it is unknown."""
    source, target = labels.get("source", ""), labels.get("target", "")
    sli = _SLIS.get(labels.get("sli", ""))
    if not source or not target or sli is None:
        return None
    return Indicator(Flow(source, target), SliKey(sli, labels.get("tier") or ALL))


def _milliseconds(seconds: float) -> int | None:
    return round(seconds * 1000) if math.isfinite(seconds) else None


def _text(line: bytes) -> str:
    try:
        return line.rstrip(b"\r").decode()
    except UnicodeDecodeError:
        raise InvalidExpositionError(f"a line is not UTF-8: {line[:_MAX_QUOTE]!r}") from None
