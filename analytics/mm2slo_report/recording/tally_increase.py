"""The increase of counters between two samples, counter resets included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.reporting.tally_arithmetic import minus

if TYPE_CHECKING:
    from mm2slo_core.reporting.step_counts import Tally


def tally_increase(before: Tally, now: Tally, *, restarted: bool = False) -> Tally:
    """The increase from *before* to *now*.

    *now* itself after a counter reset: the process *restarted*, or a counter fell. All three live
    in one process: if one was reset, so were the others, even if they exceed their old values.
    """
    if (
        restarted
        or now.good < before.good
        or now.total < before.total
        or now.unknown < before.unknown
    ):
        return now
    return minus(now, before)
