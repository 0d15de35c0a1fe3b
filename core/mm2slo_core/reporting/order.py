"""The order of a list, and its headline."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.status import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.reporting.entry import Entry

_ORDER: Final = (Status.BREACHED, Status.WARNING, Status.NO_DATA, Status.OK, Status.IDLE)


def worst_first(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """By status, then by what is left of the budget, then by id."""
    return tuple(sorted(entries, key=_badness))


def by_status(entries: Iterable[Entry]) -> Mapping[Status, int]:
    """How many entries stand how; each status is there, the worst first."""
    found = Counter(each.status for each in entries)
    return {status: found[status] for status in _ORDER}


def _badness(entry: Entry) -> tuple[int, float, str]:
    remaining = entry.budget.remaining
    return (_ORDER.index(entry.status), 1.0 if remaining is None else remaining, entry.id)
