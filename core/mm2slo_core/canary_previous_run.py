"""What becomes of the canaries of a former run, from what is found on both clusters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mm2slo_core.canary_rules import Arrival, SentCanary


class PreviousState(Enum):
    """How far the former run had settled a canary."""

    SETTLED = auto()
    BEFORE_DEADLINE = auto()
    LATE = auto()
    """Bad for availability, counted by the former run; its arrival is awaited."""
    UNSEEN = auto()
    """Its deadline passed while nobody looked."""


class InheritedCanary(NamedTuple):
    """One canary of the former run, and its arrival if there is one."""

    canary: SentCanary
    state: PreviousState
    arrival: Arrival | None


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """What the newest canary of the former run tells, and when we took over.

    `floor` and `newest_arrived` are the figures it carries; `died_at` is its send time, the best
    outside knowledge of when that run ended. Where `newest_arrived` is not told, each canary that
    is found on the target counts as settled before: some may then be counted in neither run, none
    in both.
    """

    floor: int | None
    newest_arrived: int | None
    died_at: float
    resumed_at: float

    def inherit(
        self, sent: Iterable[SentCanary], arrivals: Iterable[Arrival], deadline: float
    ) -> Iterator[InheritedCanary]:
        """Sort the canaries found on the source by what is left to settle, in their order."""
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
