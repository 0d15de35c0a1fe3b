"""Finds when burning window pairs started to burn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.exclusion import Span
from mm2slo_core.reporting.burning_pairs import burning_since
from mm2slo_core.reporting.entry_order import worst_first
from mm2slo_core.reporting.report_entry import PairState
from mm2slo_report.sources.sli_source import SliSourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mm2slo_core.objectives import Objective
    from mm2slo_core.reporting.report_entry import Entry, PairReading
    from mm2slo_core.reporting.step_counts import StepCounts

    ReadHistory = Callable[[Objective, Span], Sequence[StepCounts]]

MAX_OBJECTIVES: Final = 10
"""Of one report: reading the history of every objective would make a list too slow."""
_FIRST_LOOKBACK_MS: Final = 6 * 3_600_000
_LOOKBACK_FACTOR: Final = 4


def with_burn_starts(entries: Sequence[Entry], history: ReadHistory) -> tuple[Entry, ...]:
    """*entries* with `since` set on burning pairs of the worst MAX_OBJECTIVES entries.

    It stays None if the source fails, or if the pair burned throughout the objective's window.
    """
    burning = [each for each in entries if any(map(_is_burning, each.pairs))]
    chosen = {each.id for each in worst_first(burning)[:MAX_OBJECTIVES]}
    return tuple(_with_burn_start(each, history) if each.id in chosen else each for each in entries)


def _with_burn_start(entry: Entry, history: ReadHistory) -> Entry:
    pairs = tuple(
        replace(each, since=_find_burn_start(entry, each, history)) if _is_burning(each) else each
        for each in entry.pairs
    )
    return replace(entry, pairs=pairs)


def _find_burn_start(entry: Entry, pair: PairReading, history: ReadHistory) -> int | None:
    """Search with growing lookback: most burns started recently."""
    window, back = round(entry.objective.window * 1000), _FIRST_LOOKBACK_MS
    while True:
        back = min(back, window)
        span = Span(entry.as_of - back - round(pair.long_seconds * 1000), entry.as_of)
        try:
            within = history(entry.objective, span)
        except SliSourceError:
            return None
        found = burning_since(pair, entry.objective.target, within, span)
        if found is not None or back == window:
            return found
        back *= _LOOKBACK_FACTOR


def _is_burning(pair: PairReading) -> bool:
    return pair.state is PairState.BURNING
