"""What counters counted in between, resets joined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.reporting.tallies import minus

if TYPE_CHECKING:
    from mm2slo_core.reporting.history import Tally


def counted(before: Tally, now: Tally, *, anew: bool = False) -> Tally:
    """What counters that say *now* counted since they said *before*.

    All of it when they started *anew* or one of them fell. The three live in one process: where one
    was reset, the others were as well, even if they have passed their old values by now.
    """
    if anew or now.good < before.good or now.total < before.total or now.unknown < before.unknown:
        return now
    return minus(now, before)
