"""State of the previous run's canaries, derived from the records on both clusters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_core.canary_rules import Arrival, SentCanary


class PreviousState(Enum):
    """How far the previous run had settled a canary."""

    SETTLED = auto()
    BEFORE_DEADLINE = auto()
    LATE = auto()
    """Counted as bad for availability by the previous run; its arrival is pending."""
    UNSEEN = auto()
    """Its deadline passed between the two runs."""


class InheritedCanary(NamedTuple):
    """One canary of the previous run, and its arrival if it was found."""

    canary: SentCanary
    state: PreviousState
    arrival: Arrival | None


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """What the newest canary of the previous run carries, and when this run started.

    `floor` and `newest_arrived` are its headers; `died_at` is its send time, the best estimate of
    when that run ended. Without `newest_arrived`, each canary found on the target counts as
    settled: some may be counted in neither run, none in both.
    """

    floor: int | None
    newest_arrived: int | None
    died_at: float
    resumed_at: float

    def inherit(
        self, sent: Iterable[SentCanary], arrivals: Iterable[Arrival], deadline: float
    ) -> Iterator[InheritedCanary]:
        """Yield the canaries found on the source with their state, in sequence order."""
        found: dict[int, Arrival] = {}
        for arrival in arrivals:
            found.setdefault(arrival.sequence, arrival)
        floor = self.floor or 0
        seen_to = float("inf") if self.newest_arrived is None else self.newest_arrived
        for canary in sorted(sent):
            arrived = found.get(canary.sequence)
            if canary.sequence < floor or (arrived and canary.sequence <= seen_to):
                state = PreviousState.SETTLED
            elif canary.sent_at + deadline > self.resumed_at:
                state = PreviousState.BEFORE_DEADLINE
            elif canary.sent_at + deadline <= self.died_at:
                state = PreviousState.LATE
            else:
                state = PreviousState.UNSEEN
            yield InheritedCanary(canary, state, arrived)
