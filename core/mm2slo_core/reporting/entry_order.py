"""The order of entries, and their number by status."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from mm2slo_core.objectives.slo_status import Status

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from mm2slo_core.reporting.report_entry import Entry

_ORDER: Final = (
    Status.BREACHED,
    Status.AT_RISK,
    Status.NO_DATA,
    Status.MET,
    Status.IDLE,
)


def worst_first(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Sort by status, remaining budget and id."""
    return tuple(sorted(entries, key=_badness))


def count_by_status(entries: Iterable[Entry]) -> Mapping[Status, int]:
    """The number of entries by status; all statuses, the worst first."""
    found = Counter(each.status for each in entries)
    return {status: found[status] for status in _ORDER}


def headline(entries: Collection[Entry]) -> dict[str, int]:
    """The number of objectives, of each status, and of verdicts that are not current."""
    return {
        "objectives": len(entries),
        **{status.value: number for status, number in count_by_status(entries).items()},
        "stale": sum(not each.is_current and each.status is not Status.NO_DATA for each in entries),
    }


def _badness(entry: Entry) -> tuple[int, float, str]:
    remaining = entry.budget.remaining
    return (_ORDER.index(entry.status), 1.0 if remaining is None else remaining, entry.id)
