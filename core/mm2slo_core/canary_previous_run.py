"""State of the canaries of earlier runs, derived from the records on both clusters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mm2slo_core.canary_rules import Arrival, SentCanary

_MAX_UNOBSERVED_SHARE = 0.5
"""A cluster may have been away while no process ran: a missing arrival is evidence against the flow
only if one ran for the greater part of the time until the deadline."""


class PreviousState(Enum):
    """How far the previous runs had settled a canary."""

    SETTLED = auto()
    BEFORE_DEADLINE = auto()
    LATE = auto()
    """Counted as bad for availability by a previous run; its arrival is pending."""
    MISSED = auto()
    """Its deadline passed, which no scraped run has counted, and it has not arrived."""
    UNSEEN = auto()
    """Its deadline passed, and whether it arrived by then is not known."""


class InheritedCanary(NamedTuple):
    """One canary of the previous run, and its arrival if it was found."""

    canary: SentCanary
    state: PreviousState
    arrival: Arrival | None


@dataclass(frozen=True, slots=True)
class PreviousRun:
    """What the newest canary that knows it carries, and when this run started.

    `floor`, `newest_arrived` and `settled_to` are its headers. Without `newest_arrived`, each
    canary found on the target counts as settled: some may be counted in neither run, none in both.
    """

    floor: int | None
    newest_arrived: int | None
    settled_to: float | None
    started_at: float
    resumed_at: float
    """When the target had been read to its end."""
    sending_since: float
    """When the first canary of this run was due."""

    def inherit(
        self, sent: Iterable[SentCanary], arrivals: Iterable[Arrival], deadline: float
    ) -> Iterator[InheritedCanary]:
        """Yield the canaries found on the source with their state, in sequence order."""
        found: dict[int, Arrival] = {}
        for arrival in arrivals:
            found.setdefault(arrival.sequence, arrival)
        floor = self.floor or 0
        seen_to = float("inf") if self.newest_arrived is None else self.newest_arrived
        canaries = sorted(sent)
        gaps = list(self._gaps(canaries))
        for canary in canaries:
            arrived, due = found.get(canary.sequence), canary.sent_at + deadline
            if canary.sequence < floor or (arrived and canary.sequence <= seen_to):
                state = PreviousState.SETTLED
            elif due > self.resumed_at:
                state = PreviousState.BEFORE_DEADLINE
            elif self.settled_to is not None and due <= self.settled_to:
                state = PreviousState.LATE
            elif arrived:
                state = PreviousState.UNSEEN
            else:
                unobserved = sum(
                    max(0.0, min(gap.started, due) - max(gap.ended, canary.sent_at)) for gap in gaps
                )
                is_evidence = unobserved <= _MAX_UNOBSERVED_SHARE * deadline
                state = PreviousState.MISSED if is_evidence else PreviousState.UNSEEN
            yield InheritedCanary(canary, state, arrived)

    def unsent(self, sent: Iterable[SentCanary], interval: float, counted_to: float) -> int:
        """How many canaries were due after *counted_to* while no run sent any."""
        count = 0
        for gap in self._gaps(sorted(sent)):
            due = round((gap.sent - gap.ended) / interval) - 1
            count += max(0, due - max(0, int((counted_to - gap.ended) / interval)))
        return count

    def _gaps(self, sent: Sequence[SentCanary]) -> Iterator[_Gap]:
        """The gaps between runs: sequences start at the milliseconds of the start of a run."""
        for before, after in pairwise(sent):
            if after.sequence / 1000 > before.sent_at:
                yield _Gap(before.sent_at, after.sequence / 1000, after.sent_at)
        if sent and self.started_at > sent[-1].sent_at:
            yield _Gap(sent[-1].sent_at, self.started_at, self.sending_since)


class _Gap(NamedTuple):
    """Between two runs: the last canary of one, the start of the next one and its first canary."""

    ended: float
    started: float
    sent: float
