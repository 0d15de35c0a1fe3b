"""What the history takes and gives, beside the types of core."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from mm2slo_core.reporting.minute_counts import Indicator, Tally


class TallyAt(NamedTuple):
    """The totals at a moment, and how many minutes with a sample there were up to it.

    `coarse` says that the moment lies in an hour whose minutes are folded: both are as of the
    hour's start.
    """

    tally: Tally
    minutes: int
    coarse: bool = False


class CounterState(NamedTuple):
    """What a replica's counters of an indicator said last, so that the next look can be compared.

    Times are epoch ms: `at` of the look, `started` of the counters, as by the process's start.
    """

    replica: str
    indicator: Indicator
    at: int
    raw: Tally
    started: int | None = None
