"""The fate of canaries: probe records sent on the source and awaited on the target.

Each indicator of a canary is settled once, good and total together:
- availability and latency on arrival or at the deadline;
- completeness on evidence alone: arrived (good), or the replicated position passed it and it did
  not arrive (lost); removed on the source before it was copied (expired, counted apart);
- what cannot be known (our restart, a failed produce, an unreachable cluster) is unknown, and is
  settled later where evidence appears.
A late arrival is bad for availability and good for completeness.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.canary_counters import CanaryCounters
from mm2slo_core.canary_evidence import CanaryEvidence
from mm2slo_core.canary_previous_run import PreviousRun, PreviousState
from mm2slo_core.canary_rules import Arrival, CanaryRules, CanaryTotals, SentCanary, Suspect
from mm2slo_core.pending_canaries import PendingCanary, Punctuality
from mm2slo_core.sequence_set import SequenceSet
from mm2slo_core.unobservable_periods import UnobservableCause, UnobservablePeriods

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_core.sli_counters import SliCount, SliKey

__all__ = ["Arrival", "CanaryLedger", "CanaryRules", "CanaryTotals", "PreviousRun", "SentCanary"]


@dataclass(slots=True)
class _Open:
    """A canary before its deadline."""

    partition: int
    scheduled_at: float
    source_offset: int | None = None


class CanaryLedger:
    """Settles the canaries of one flow, carrier and instance, driven by events with their times.

    Feed arrivals before the tick of the same moment: `tick(now)` states that the target has been
    read up to *now* or is declared unreachable. Sequences ascend, from 0 or from where a former
    run of the instance ended.
    """

    def __init__(self, rules: CanaryRules) -> None:
        self._rules = rules
        self._scores = CanaryCounters(rules)
        self._open: dict[int, _Open] = {}
        self._due: deque[tuple[float, int]] = deque()  # deadline and sequence, ascending
        self._evidence = CanaryEvidence(rules)
        self._closed = SequenceSet()  # completeness is settled
        self._absent = SequenceSet()  # of these: without an arrival
        self._blind = UnobservablePeriods()
        self._last_arrival_at: float | None = None
        self._newest_sent_at: float | None = None
        self._newest_arrived: int | None = None
        self._first_sequence: int | None = None
        self._next_sequence = 0

    # What is known

    @property
    def counters(self) -> dict[SliKey, SliCount]:
        """Good, total and unknown events of each indicator, there from the start at 0."""
        return self._scores.counters

    @property
    def totals(self) -> CanaryTotals:
        """Canaries by fate."""
        return self._scores.totals

    @property
    def pending(self) -> int:
        """Canaries whose completeness is open: before their deadline, or awaited after it."""
        return len(self._open) + len(self._evidence)

    @property
    def last_arrival_at(self) -> float | None:
        """When a canary last arrived; None before the first."""
        return self._last_arrival_at

    @property
    def next_sequence(self) -> int:
        """The sequence to give to the next canary."""
        return self._next_sequence

    @property
    def newest_arrived(self) -> int | None:
        """The highest sequence that arrived; canaries carry it for the sake of a restart."""
        return self._newest_arrived

    @property
    def floor(self) -> int:
        """Every sequence below is settled; canaries carry it for the sake of a restart."""
        waiting = [canary.sequence for canary in self._evidence.oldest]
        waiting.extend(suspect.sequence for suspect in self._evidence.suspects)
        waiting.extend(next(((seq,) for _, seq in self._due if seq in self._open), ()))
        return min(waiting, default=self._next_sequence)

    def take_latencies(self) -> list[float]:
        """Latencies in seconds observed since the last call, those of late arrivals included."""
        return self._scores.take_latencies()

    def silence(self, now: float) -> float | None:
        """Seconds for which canaries have been out without any arriving.

        None when none is out, when the newest was sent longer ago than a deadline (we stopped
        sending: no evidence), and while a cluster is unreachable. Time before the end of a blind
        period does not count.
        """
        if self._newest_sent_at is None or now - self._newest_sent_at > self._rules.deadline:
            return None
        oldest = self._oldest_out()
        if oldest is None or self._blind.within(now, now):
            return None
        since = max(oldest, self._last_arrival_at or oldest, self._blind.ended_at() or oldest)
        return max(now - since, 0.0)

    # Events

    def scheduled(self, sequence: int, partition: int, at: float) -> None:
        """A canary is due: it counts from now on, whatever becomes of its produce.

        A produce that fails needs no event: not acknowledged by the deadline means unknown.
        """
        self._know(sequence)
        self._open[sequence] = _Open(partition, at)
        self._due.append((at + self._rules.deadline, sequence))

    def produced(self, sequence: int, source_partition: int, source_offset: int, at: float) -> None:
        """The source acknowledged the canary."""
        self._scores.totals.sent += 1
        self._newest_sent_at = at
        canary = self._open.get(sequence)
        if canary is not None:
            canary.partition, canary.source_offset = source_partition, source_offset
        elif sequence not in self._closed:
            # Acknowledged after its deadline: it is on the source, so its arrival is awaited.
            self._await(source_partition, PendingCanary(sequence, source_offset, at, Punctuality.UNKNOWN))

    def arrived(
        self, sequence: int, target_partition: int, at: float, not_before: float | None = None
    ) -> None:
        """A canary was read on the target.

        *at* is its append time where the topic tells it, else the time of the read. Where the
        reader was behind, *not_before* is the moment up to which it had read before. Sequences
        that were never scheduled nor restored are ignored.
        """
        if not self._is_known(sequence):
            return
        if sequence in self._closed and sequence not in self._absent:
            self._scores.came_again()
            return
        self._scores.came()
        self._last_arrival_at = max(at, self._last_arrival_at or at)
        self._newest_arrived = max(sequence, self._newest_arrived or 0)
        canary = self._open.pop(sequence, None)
        if canary is None:
            self._arrived_late(sequence, target_partition, at, not_before)
        elif at - canary.scheduled_at > self._rules.deadline:
            self._settle_deadline(sequence, canary)
            self._arrived_late(sequence, target_partition, at, not_before)
        else:
            self._close_arrived(sequence, canary.partition, target_partition)
            self._scores.latency(at - canary.scheduled_at)
            self._scores.timed(canary.scheduled_at, at, not_before)

    def position(
        self, source_partition: int, next_offset: int, log_start: int, *, target_read: bool
    ) -> None:
        """Evidence for completeness: replicated position and log start of a source partition.

        *next_offset* must be proven: max(last committed, newest synced upstream) + 1, never an
        interpolated position. *target_read*: the target has since been read to an end offset that
        was fetched after this position; without it nothing is judged.
        """
        for sequence, expired in self._evidence.weigh(
            source_partition, next_offset, log_start, target_read=target_read
        ):
            self._settle_absent(sequence, expired=expired)

    def suspects(self) -> tuple[Suspect, ...]:
        """Canaries to look up on a compacted source, by their offsets, before they count as lost.

        The cleaner may have removed them (a newer record has their key), which is no loss by MM2.
        """
        return self._evidence.suspects

    def looked_up(self, sequence: int, *, present: bool) -> None:
        """The answer for a suspect: *present* on the source means lost, else expired."""
        if self._evidence.clear(sequence):
            self._settle_absent(sequence, expired=not present)

    def tick(self, now: float) -> None:
        """Settle what is due; the target has been read up to *now*, or is unreachable."""
        while self._due and self._due[0][0] <= now:
            _, sequence = self._due.popleft()
            canary = self._open.pop(sequence, None)
            if canary is not None:
                self._settle_deadline(sequence, canary)
        self._blind.forget_before(now - 2 * self._rules.deadline)

    def unreachable(self, cause: UnobservableCause, at: float) -> None:
        """A cluster cannot be reached from *at* on; repeated calls change nothing."""
        self._blind.start(cause, at)

    def reachable(self, cause: UnobservableCause, at: float) -> None:
        """A cluster is reached again; without a period of unreachability it does nothing."""
        self._blind.end(cause, at)

    def restore(
        self, former: PreviousRun, sent: Iterable[SentCanary], arrivals: Iterable[Arrival]
    ) -> None:
        """Take over the canaries of a former run, re-read from the source and the target.

        What that run settled is not counted again, and what this ledger knows already (only the
        sending process was restarted) stays. A deadline that nobody watched is unknown, unless the
        time of the arrival settles it.
        """
        for canary, state, arrival in former.inherit(sent, arrivals, self._rules.deadline):
            if not self._is_known(canary.sequence):
                self._take_over(canary, state, found=arrival is not None)
            elif (open_one := self._open.get(canary.sequence)) is not None:
                open_one.source_offset = canary.source_offset
            if arrival is not None and canary.sequence not in self._closed:
                self.arrived(
                    canary.sequence, arrival.target_partition, arrival.at, arrival.not_before
                )
        if former.newest_arrived is not None:
            self._newest_arrived = max(former.newest_arrived, self._newest_arrived or 0)

    # Settling

    def _is_known(self, sequence: int) -> bool:
        first = self._first_sequence
        return first is not None and first <= sequence < self._next_sequence

    def _take_over(self, canary: SentCanary, state: PreviousState, *, found: bool) -> None:
        sequence = canary.sequence
        self._know(sequence)
        if state is PreviousState.SETTLED:
            self._closed.add(sequence)
            if not found:
                self._absent.add(sequence)
        elif state is PreviousState.BEFORE_DEADLINE:
            self._open[sequence] = _Open(canary.partition, canary.sent_at, canary.source_offset)
            self._due.append((canary.sent_at + self._rules.deadline, sequence))
        elif state is PreviousState.LATE:
            self._await(canary.partition, canary.awaited(Punctuality.SETTLED))
        else:
            self._await(canary.partition, canary.awaited(Punctuality.OPEN))
            if not found:
                self._scores.time_unknown()

    def _know(self, sequence: int) -> None:
        if self._first_sequence is None:
            self._first_sequence = sequence
        self._next_sequence = max(self._next_sequence, sequence + 1)

    def _settle_deadline(self, sequence: int, canary: _Open) -> None:
        """Nothing arrived in time."""
        if canary.source_offset is None:
            # Not known to be on the source. Should it arrive all the same, that is evidence.
            self._scores.time_unknown()
            self._scores.completeness_unknown()
            return
        if self._blind.explains_absence(canary.scheduled_at, canary.scheduled_at + self._rules.deadline):
            punctuality = Punctuality.UNKNOWN
            self._scores.time_unknown()
        else:
            punctuality = Punctuality.SETTLED
            self._scores.overdue()
        self._await(
            canary.partition,
            PendingCanary(sequence, canary.source_offset, canary.scheduled_at, punctuality),
        )

    def _arrived_late(
        self, sequence: int, target_partition: int, at: float, not_before: float | None
    ) -> None:
        """An arrival after its deadline was judged, or one whose deadline we did not see."""
        if sequence in self._closed or self._evidence.clear(sequence):
            # Settled as lost or expired, or about to be; counters do not go back.
            self._scores.totals.late += 1
            if sequence not in self._closed:
                self._close_arrived(sequence, None, target_partition)
            return
        taken = self._evidence.take(sequence, target_partition)
        partition, canary = taken if taken is not None else (None, None)
        self._close_arrived(sequence, partition, target_partition)
        if canary is None:
            return  # never acknowledged: its send time is not certain
        self._scores.latency(at - canary.sent_at)
        in_time = at - canary.sent_at <= self._rules.deadline
        if canary.punctuality is Punctuality.OPEN:
            self._scores.timed(canary.sent_at, at, not_before)
        if not in_time:
            self._scores.totals.late += 1

    def _close_arrived(self, sequence: int, source: int | None, target: int) -> None:
        self._closed.add(sequence)
        self._scores.complete(sequence, source, target)

    def _settle_absent(self, sequence: int, *, expired: bool) -> None:
        self._closed.add(sequence)
        self._absent.add(sequence)
        self._scores.absent(expired=expired)

    def _await(self, partition: int, canary: PendingCanary) -> None:
        dropped = self._evidence.append(partition, canary)
        if dropped is not None:
            self._scores.totals.unknown += 1
            self._scores.completeness_unknown()

    def _oldest_out(self) -> float | None:
        """Send time of the oldest canary that is on the source and has not arrived."""
        times = [canary.sent_at for canary in self._evidence.oldest]
        for _, sequence in self._due:
            canary = self._open.get(sequence)
            if canary is not None and canary.source_offset is not None:
                times.append(canary.scheduled_at)
                break
        return min(times, default=None)
