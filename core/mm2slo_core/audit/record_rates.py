"""Rates of lost, altered, moved and duplicated records.

Only settled records count: pending and unauditable ones are undecided, and expired ones were never
compared. An overdue record has not arrived, so it counts as lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.audit.confidence_bounds import Interval, clopper_pearson
from mm2slo_core.audit.record_verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

_SETTLED: Final = (
    Verdict.MATCHED,
    Verdict.LATE,
    Verdict.LOST,
    Verdict.OVERDUE,
    Verdict.MOVED,
    Verdict.ALTERED,
)
ABSENT: Final = (Verdict.LOST, Verdict.OVERDUE)
"""Verdicts on settled records that have not arrived."""
_OF_A_CENSUS: Final = Verdict.ALTERED
"""A sample draws the altered copy independently, so for it the record is lost."""


class Rate(NamedTuple):
    """*events* in *n* records or keys; *n* is above 0."""

    events: int
    n: int

    @property
    def estimate(self) -> float:
        return self.events / self.n

    def interval(self, *, census: bool) -> Interval:
        """Return the 95 % confidence interval; for a census the rate itself."""
        return Interval(self.estimate, self.estimate) if census else clopper_pearson(*self)


def record_rates(
    counts: Mapping[Verdict, int], copied_again: int, *, census: bool
) -> Mapping[Verdict, Rate]:
    """Return the rates in *counts*, without rates of no records.

    Lost (with overdue), altered and moved records are relative to settled source records;
    *copied_again*, the records with duplicates or replays, to replicated ones. Copies are not
    counted: a sample draws those of a record together, so they are not independent.
    """
    settled = sum(counts.get(verdict, 0) for verdict in _SETTLED)
    absent = sum(counts.get(verdict, 0) for verdict in ABSENT)
    copied = settled - absent
    found = {
        verdict: Rate(events, settled)
        for verdict, events in (
            (Verdict.LOST, absent),
            (Verdict.ALTERED, counts.get(Verdict.ALTERED, 0)),
            (Verdict.MOVED, counts.get(Verdict.MOVED, 0)),
        )
        if settled and (census or verdict is not _OF_A_CENSUS)
    }
    if copied:
        found[Verdict.DUPLICATE] = Rate(min(copied_again, copied), copied)
    return found
