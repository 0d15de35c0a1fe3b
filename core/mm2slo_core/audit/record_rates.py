"""Rates per record: what share of the records was lost, altered, moved or copied again.

Of the records whose fate is settled; what is pending, overdue or unauditable may still go either
way, and what expired before it was copied was never looked at.
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
    Verdict.MOVED,
    Verdict.ALTERED,
)
_OF_A_CENSUS: Final = Verdict.ALTERED
"""Told from the altered copy, which a sample by content draws on its own: lost for a sample."""


class Rate(NamedTuple):
    """*events* of *n* records or keys; *n* is above 0."""

    events: int
    n: int

    @property
    def estimate(self) -> float:
        """As counted."""
        return self.events / self.n

    def interval(self, *, census: bool) -> Interval:
        """What it says of all, with 95 % confidence: of a census the rate itself."""
        return Interval(self.estimate, self.estimate) if census else clopper_pearson(*self)


def record_rates(counts: Mapping[Verdict, int], *, census: bool) -> Mapping[Verdict, Rate]:
    """The rates that *counts* tell; nothing is said of nothing.

    Lost, altered and moved ones are of the settled source records; duplicates, with replays, of
    those that were copied.
    """
    settled = sum(counts.get(verdict, 0) for verdict in _SETTLED)
    copied = settled - counts.get(Verdict.LOST, 0)
    again = counts.get(Verdict.DUPLICATE, 0) + counts.get(Verdict.REPLAY, 0)
    found = {
        verdict: Rate(counts.get(verdict, 0), settled)
        for verdict in (Verdict.LOST, Verdict.ALTERED, Verdict.MOVED)
        if settled and (census or verdict is not _OF_A_CENSUS)
    }
    if copied:
        # One record can be copied again and again; a rate is of records that were.
        found[Verdict.DUPLICATE] = Rate(min(again, copied), copied)
    return found
