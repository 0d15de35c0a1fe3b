"""Since when pairs burn, from minutes that are read for that alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.burning import burning_since
from mm2slo_core.reporting.entry import PairState
from mm2slo_core.reporting.order import worst_first
from mm2slo_report.sources.port import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.entry import Entry, PairReading
    from mm2slo_core.reporting.history import MinuteCounts

    Minutes = Callable[[Objective, Span], Sequence[MinuteCounts]]

MOST: Final = 10
"""Objectives of one report: when everything burns, a list must not wait for each one's minutes."""
_FIRST_MS: Final = 6 * 3_600_000
_FARTHER: Final = 4


def dated(entries: Sequence[Entry], minutes: Minutes) -> tuple[Entry, ...]:
    """*entries*, the worst of those that burn with since when; *minutes* of an objective in a span.

    What the source cannot tell stays None, and so does what burned throughout the objective's
    window.
    """
    burning = [each for each in entries if any(map(_burns, each.pairs))]
    chosen = {each.id for each in worst_first(burning)[:MOST]}
    return tuple(_dated(each, minutes) if each.id in chosen else each for each in entries)


def _dated(entry: Entry, minutes: Minutes) -> Entry:
    pairs = tuple(
        replace(each, since=_since(entry, each, minutes)) if _burns(each) else each
        for each in entry.pairs
    )
    return replace(entry, pairs=pairs)


def _since(entry: Entry, pair: PairReading, minutes: Minutes) -> int | None:
    """Looks back step by step: most of what burns has started not long ago."""
    window, back = round(entry.objective.window * 1000), _FIRST_MS
    while True:
        back = min(back, window)
        span = Span(entry.as_of - back - round(pair.long_seconds * 1000), entry.as_of)
        try:
            within = minutes(entry.objective, span)
        except SliSourceError:
            return None
        found = burning_since(pair, entry.objective.target, within, span)
        if found is not None or back == window:
            return found
        back *= _FARTHER


def _burns(pair: PairReading) -> bool:
    return pair.state is PairState.BURNING
