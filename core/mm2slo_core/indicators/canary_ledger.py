"""Outcomes of canaries: records sent on the source and awaited on the target."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from mm2slo_core.indicators.canary_rules import (
    AFFINITY,
    COMPLETENESS,
    ORDER,
    UNIQUENESS,
    CanaryArrival,
    CanaryRules,
    CanaryTotals,
    PendingCanary,
    PendingInPartition,
    PreviousRun,
    PreviousState,
    Punctuality,
    SentCanary,
    Suspect,
    UnobservableCause,
    UnobservablePeriods,
)
from mm2slo_core.indicators.sli_counters import BAD, GOOD, UNKNOWN, SliCount, SliCounters, SliKey


@dataclass(slots=True)
class _Open:
    """A canary whose deadline has not passed."""

    partition: int
    scheduled_at: float
    source_offset: int | None = None


class CanaryLedger:
    """Settles the canaries of one flow, carrier and instance from timed events.

    Invariants:
    A. Each SLI of a canary is settled at most once, good and total together; no counter decreases.
    B. Availability and latency are settled on arrival or at the deadline, whichever is first; they
       are unknown if the canary is not known to be on the source, or if an unreachable cluster or a
       stopped exporter explains that it is missing.
    C. Completeness is settled by evidence only, never by time: it arrived (good), or the replicated
       position passed it and the target was read beyond (lost), or the source removed it before
       replication (expired, counted separately).
    D. All canaries below `floor` are settled; what is not settled yet survives a restart.
    So a late arrival is bad for availability and good for completeness, and an unknown event is
    settled later if evidence appears.

    Report arrivals before the tick of the same time: `tick(now)` states that the target has been
    read up to *now* or is declared unreachable. Sequences ascend, from 0 or from where the
    previous run of the instance ended.
    """

    def __init__(self, rules: CanaryRules, previous: CanaryLedger | None = None) -> None:
        """Continues the counts of *previous*, whose pending canaries are restored or forgotten."""
        self._rules = rules
        self._counters: CanaryCounters = CanaryCounters(
            rules, previous._counters if previous else None
        )
        self._open: dict[int, _Open] = {}
        self._due: deque[tuple[float, int]] = deque()  # deadline and sequence, ascending
        self._evidence = CanaryEvidence(rules)
        self._closed = SequenceSet()  # completeness is settled
        self._absent = SequenceSet()  # of these: without an arrival
        self._unobservable = UnobservablePeriods()
        self.last_arrival_at: float | None = None
        """Time of the newest arrival; None before the first."""
        self.newest_arrived: int | None = None
        """The highest sequence that arrived; each canary carries it, for use after a restart."""
        self._newest_sent_at: float | None = None
        self._first_sequence: int | None = None
        self._next_sequence = 0
        self._unsent_to = 0.0  # canaries that no process sent are counted up to this time

    # State

    @property
    def counters(self) -> dict[SliKey, SliCount]:
        """Good, total and unknown events of each SLI, initialised at 0."""
        return self._counters.counters

    @property
    def totals(self) -> CanaryTotals:
        return self._counters.totals

    @property
    def pending(self) -> int:
        """Canaries whose completeness is not settled, before or after their deadline."""
        return len(self._open) + len(self._evidence)

    @property
    def floor(self) -> int:
        """All lower sequences are settled; each canary carries it, for use after a restart."""
        pending = [canary.sequence for canary in self._evidence.oldest]
        pending.extend(suspect.sequence for suspect in self._evidence.suspects)
        pending.extend(next(((seq,) for _, seq in self._due if seq in self._open), ()))
        return min(pending, default=self._next_sequence)

    def take_latencies(self) -> list[float]:
        """Return the latencies in seconds since the last call, including late arrivals."""
        return self._counters.take_latencies()

    def silence(self, now: float) -> float | None:
        """Return the seconds without an arrival while canaries are pending.

        None when none is pending, when the newest was sent more than a deadline ago (sending
        stopped: no evidence), and while a cluster is unreachable. Counts from the end of the
        newest unobservable period.
        """
        if self._newest_sent_at is None or now - self._newest_sent_at > self._rules.deadline:
            return None
        oldest = self._oldest_pending()
        if oldest is None or self._unobservable.within(now, now):
            return None
        since = max(oldest, self.last_arrival_at or oldest, self._unobservable.ended_at() or oldest)
        return max(now - since, 0.0)

    # Events

    def scheduled(self, sequence: int, partition: int, at: float) -> None:
        """A canary is due and counts from now on.

        A failed produce needs no event: a canary not acknowledged by its deadline is unknown.
        """
        self._track(sequence)
        self._open[sequence] = _Open(partition, at)
        self._due.append((at + self._rules.deadline, sequence))

    def produced(self, sequence: int, source_partition: int, source_offset: int, at: float) -> None:
        self._counters.totals.sent += 1
        self._newest_sent_at = at
        canary = self._open.get(sequence)
        if canary is not None:
            canary.partition, canary.source_offset = source_partition, source_offset
        elif sequence not in self._closed:
            # Acknowledged after its deadline, when B made its times unknown: it is on the source
            # and may still arrive, so completeness waits for evidence (C).
            self._add_pending(
                source_partition, PendingCanary(sequence, source_offset, at, Punctuality.UNKNOWN)
            )

    def arrived(
        self, sequence: int, target_partition: int, at: float, not_before: float | None = None
    ) -> None:
        """A canary was read on the target.

        *at* is its append time if the topic has one, else the time of the read. If the reader was
        behind, *not_before* is the time up to which it had read before. Sequences that were
        neither scheduled nor restored are ignored.
        """
        # MM2 replicates the canaries of all exporters and earlier runs on this topic, too.
        if not self._is_tracked(sequence):
            return
        if self.has_arrived(sequence):
            # MM2 delivers at least once without exactly-once support (KIP-618).
            self._counters.count_duplicate()
            return
        self._counters.count_arrival()
        # A canary found after a restart may have arrived at any time since *not_before*.
        arrived_at = at if not_before is None else not_before
        self.last_arrival_at = max(arrived_at, self.last_arrival_at or arrived_at)
        self.newest_arrived = max(sequence, self.newest_arrived or 0)
        canary = self._open.pop(sequence, None)
        if canary is None:
            self._arrived_late(sequence, target_partition, at, not_before)
        elif at - canary.scheduled_at > self._rules.deadline:
            self._settle_deadline(sequence, canary)
            self._arrived_late(sequence, target_partition, at, not_before)
        else:
            self._close_arrived(sequence, canary.partition, target_partition)
            if not_before is None:  # else its latency has only bounds
                self._counters.add_latency(at - canary.scheduled_at)
            self._counters.settle_times(canary.scheduled_at, at, not_before)

    def has_arrived(self, sequence: int) -> bool:
        """Whether the canary's arrival was settled."""
        return sequence in self._closed and sequence not in self._absent

    def position(
        self, source_partition: int, next_offset: int, log_start: int, *, target_read: bool
    ) -> None:
        """Settle completeness from the replicated position and log start of a source partition.

        *next_offset* must be proven: max(last committed, newest synced upstream) + 1, never an
        interpolated position. *target_read*: the target has been read to an end offset that was
        fetched after this position; otherwise nothing is settled.
        """
        for sequence, expired in self._evidence.settle_by_position(
            source_partition, next_offset, log_start, target_read=target_read
        ):
            self._settle_absent(sequence, expired=expired)

    def source_recreated(self) -> None:
        """The topic on the source was re-created: what had not been replicated is removed.

        Canaries before their deadline may have arrived, or be in the new topic: they are unknown
        at their deadline unless they arrive.
        """
        for sequence in self._evidence.drain():
            self._settle_absent(sequence, expired=True)
        for canary in self._open.values():
            canary.source_offset = None

    def abandon(self) -> None:
        """Forget the pending canaries: they are unknown, because their arrivals are not observed.

        Another replica got this one's name.
        """
        for _ in self._evidence.drain():
            self._counters.totals.unknown += 1
            self._counters.count_completeness_unknown()
        for canary in self._open.values():
            canary.source_offset = None

    def suspects(self) -> tuple[Suspect, ...]:
        """Return the canaries to look up on a compacted source before they count as lost.

        The log cleaner may have removed them (a newer record has their key): no loss by MM2.
        """
        return self._evidence.suspects

    def looked_up(self, sequence: int, *, present: bool) -> None:
        """Settle a suspect: lost if it is *present* on the source, else expired."""
        if self._evidence.clear(sequence):
            self._settle_absent(sequence, expired=not present)

    def tick(self, now: float) -> None:
        """Settle what is due; the target has been read up to *now*, or is unreachable."""
        while self._due and self._due[0][0] <= now:
            _, sequence = self._due.popleft()
            canary = self._open.pop(sequence, None)
            if canary is not None:
                self._settle_deadline(sequence, canary)
        self._unobservable.forget_before(now - 2 * self._rules.deadline)

    def forget_times(self) -> None:
        """The clock was set back: canaries in flight are unknown unless they arrive."""
        self.abandon()
        self.tick(inf)
        self.last_arrival_at = self._newest_sent_at = None
        self._unobservable = UnobservablePeriods()

    def unreachable(self, cause: UnobservableCause, at: float) -> None:
        """A cluster is unreachable from *at* on; repeated calls keep the first time."""
        self._unobservable.start(cause, at)

    def reachable(self, cause: UnobservableCause, at: float) -> None:
        """A cluster is reachable again; no effect if it was not unreachable."""
        self._unobservable.end(cause, at)

    def restore(
        self, previous: PreviousRun, sent: Sequence[SentCanary], arrivals: Iterable[CanaryArrival]
    ) -> None:
        """Restore the canaries of the previous runs, re-read from the source and the target.

        Events that were settled and scraped are not counted again; canaries already in this ledger
        (only the sending process restarted) are kept. A deadline that passed since then is bad if
        the canary has not arrived and a process ran most of the time, else unknown unless the
        arrival time settles it. Canaries that no process sent are unknown.
        """
        for canary, state, arrival in previous.inherit(sent, arrivals, self._rules.deadline):
            if not self._is_tracked(canary.sequence):
                self._restore_canary(canary, state, found=arrival is not None)
            elif (open_one := self._open.get(canary.sequence)) is not None:
                open_one.source_offset = canary.source_offset
            if arrival is not None and canary.sequence not in self._closed:
                self.arrived(
                    canary.sequence, arrival.target_partition, arrival.at, arrival.not_before
                )
        counted_to = max(self._unsent_to, previous.settled_to or 0.0)
        self._counters.count_unsent(previous.unsent(sent, self._rules.interval, counted_to))
        self._unsent_to = previous.sending_since
        if previous.newest_arrived is not None:
            self.newest_arrived = max(previous.newest_arrived, self.newest_arrived or 0)

    # Settlement

    def _is_tracked(self, sequence: int) -> bool:
        first = self._first_sequence
        return first is not None and first <= sequence < self._next_sequence

    def _restore_canary(self, canary: SentCanary, state: PreviousState, *, found: bool) -> None:
        sequence = canary.sequence
        self._track(sequence)
        if state is PreviousState.SETTLED:
            self._closed.add(sequence)
            if not found:
                self._absent.add(sequence)
        elif state is PreviousState.BEFORE_DEADLINE:
            self._open[sequence] = _Open(canary.partition, canary.sent_at, canary.source_offset)
            self._due.append((canary.sent_at + self._rules.deadline, sequence))
        elif state in (PreviousState.LATE, PreviousState.MISSED):
            if state is PreviousState.MISSED:
                self._counters.count_times_bad()
            self._add_pending(canary.partition, canary.as_pending(Punctuality.SETTLED))
        else:
            self._add_pending(canary.partition, canary.as_pending(Punctuality.OPEN))
            if not found:
                self._counters.count_times_unknown()

    def _track(self, sequence: int) -> None:
        if self._first_sequence is None:
            self._first_sequence = sequence
        self._next_sequence = max(self._next_sequence, sequence + 1)

    def _settle_deadline(self, sequence: int, canary: _Open) -> None:
        """Settle a canary that did not arrive by its deadline."""
        if canary.source_offset is None:
            # B: not known to be on the source; a later arrival is evidence that it was.
            self._counters.count_times_unknown()
            self._counters.count_completeness_unknown()
            return
        if self._unobservable.explains_absence(
            canary.scheduled_at, canary.scheduled_at + self._rules.deadline
        ):
            punctuality = Punctuality.UNKNOWN
            self._counters.count_times_unknown()
        else:
            punctuality = Punctuality.SETTLED
            self._counters.count_times_bad()
        self._add_pending(
            canary.partition,
            PendingCanary(sequence, canary.source_offset, canary.scheduled_at, punctuality),
        )

    def _arrived_late(
        self, sequence: int, target_partition: int, at: float, not_before: float | None
    ) -> None:
        """Settle an arrival after its deadline was settled, or whose deadline was not observed."""
        if sequence in self._closed or self._evidence.clear(sequence):
            # A: settled as lost or expired, or about to be; counters never decrease.
            self._counters.totals.late += 1
            if sequence not in self._closed:
                self._close_arrived(sequence, None, target_partition)
            return
        taken = self._evidence.take(sequence, target_partition)
        partition, canary = taken if taken is not None else (None, None)
        self._close_arrived(sequence, partition, target_partition)
        if canary is None:
            return  # never acknowledged: its send time is uncertain
        if not_before is None:
            self._counters.add_latency(at - canary.sent_at)
        in_time = at - canary.sent_at <= self._rules.deadline
        if canary.punctuality is Punctuality.OPEN:
            self._counters.settle_times(canary.sent_at, at, not_before)
        if not in_time:
            self._counters.totals.late += 1

    def _close_arrived(self, sequence: int, source: int | None, target: int) -> None:
        self._closed.add(sequence)
        self._counters.count_complete(sequence, source, target)

    def _settle_absent(self, sequence: int, *, expired: bool) -> None:
        self._closed.add(sequence)
        self._absent.add(sequence)
        self._counters.count_absent(expired=expired)

    def _add_pending(self, partition: int, canary: PendingCanary) -> None:
        dropped = self._evidence.append(partition, canary)
        if dropped is not None:
            self._counters.totals.unknown += 1
            self._counters.count_completeness_unknown()

    def _oldest_pending(self) -> float | None:
        """Return the send time of the oldest canary that is on the source and has not arrived."""
        times = [canary.sent_at for canary in self._evidence.oldest]
        for _, sequence in self._due:
            canary = self._open.get(sequence)
            if canary is not None and canary.source_offset is not None:
                times.append(canary.scheduled_at)
                break
        return min(times, default=None)


class CanaryCounters:
    """Counters of one ledger; each method counts one event of one canary."""

    __slots__ = ("_counters", "_latencies", "_newest_in", "_rules", "totals")

    def __init__(self, rules: CanaryRules, previous: CanaryCounters | None = None) -> None:
        """Continues the counts of *previous*, of the same flow with other rules."""
        self._rules = rules
        self._counters = SliCounters(rules.indicators, previous.counters if previous else None)
        self._latencies: list[float] = []
        self._newest_in: dict[int, int] = {}
        self.totals: CanaryTotals = replace(previous.totals) if previous else CanaryTotals()

    @property
    def counters(self) -> dict[SliKey, SliCount]:
        """Good, total and unknown events of each SLI, initialised at 0."""
        return self._counters.snapshot()

    def take_latencies(self) -> list[float]:
        taken, self._latencies = self._latencies, []
        return taken

    def count_duplicate(self) -> None:
        self.totals.duplicates += 1
        self._settle(UNIQUENESS, BAD)

    def count_arrival(self) -> None:
        self.totals.received += 1
        self._settle(UNIQUENESS, GOOD)

    def add_latency(self, seconds: float) -> None:
        self._latencies.append(seconds)

    def settle_times(self, sent_at: float, at: float, not_before: float | None) -> None:
        """Settle availability and latency of an arrival within [not_before, at]."""
        upper = at - sent_at
        lower = upper if not_before is None else min(not_before - sent_at, upper)
        for key, limit in self._rules.time_limits:
            within = GOOD if upper <= limit else BAD if lower > limit else UNKNOWN
            self._settle(key, within)
        if lower <= self._rules.deadline < upper:
            self.totals.unknown += 1

    def count_times_bad(self) -> None:
        """Count availability and latency as bad: no arrival by the deadline."""
        for key, _ in self._rules.time_limits:
            self._settle(key, BAD)

    def count_times_unknown(self) -> None:
        self.totals.unknown += 1
        for key, _ in self._rules.time_limits:
            self._settle(key, UNKNOWN)

    def count_unsent(self, canaries: int) -> None:
        """Count canaries that no process sent: nothing of them can be incomplete."""
        self.totals.unknown += canaries
        for key, _ in self._rules.time_limits:
            self._settle(key, SliCount(0, 0, canaries))

    def count_completeness_unknown(self) -> None:
        self._settle(COMPLETENESS, UNKNOWN)

    def count_complete(self, sequence: int, source: int | None, target: int) -> None:
        """Count an arrival; order and affinity only if the source partition is known."""
        self._settle(COMPLETENESS, GOOD)
        if source is None:
            return
        in_order = sequence > self._newest_in.get(source, -1)
        if in_order:
            self._newest_in[source] = sequence
        self.totals.reordered += not in_order
        self.totals.moved += source != target
        self._settle(ORDER, GOOD if in_order else BAD)
        self._settle(AFFINITY, GOOD if source == target else BAD)

    def count_absent(self, *, expired: bool) -> None:
        """Count a canary as lost, or as expired if the source removed it before replication."""
        if expired:
            self.totals.expired += 1
        else:
            self.totals.lost += 1
            self._settle(COMPLETENESS, BAD)

    def _settle(self, key: SliKey, events: SliCount) -> None:
        if key in self._counters:
            self._counters.add(key, events)


class Absence(NamedTuple):
    """A canary that will not arrive: lost, or *expired* on the source before replication."""

    sequence: int
    expired: bool


class CanaryEvidence:
    """Keeps pending canaries until they arrive or a position proves that they will not."""

    __slots__ = ("_confirm_losses", "_limit", "_partitions", "_seen", "_suspects")

    def __init__(self, rules: CanaryRules) -> None:
        self._confirm_losses = rules.confirm_losses
        self._limit = rules.pending_limit
        self._partitions: dict[int, PendingInPartition] = {}  # by source partition
        self._suspects: dict[int, Suspect] = {}
        self._seen: dict[int, tuple[int, int]] = {}  # position and log start, by partition

    def __len__(self) -> int:
        return self._pending + len(self._suspects)

    @property
    def oldest(self) -> list[PendingCanary]:
        """The oldest pending canary of each partition, without suspects."""
        return [first for each in self._partitions.values() if (first := each.first())]

    @property
    def suspects(self) -> tuple[Suspect, ...]:
        """Canaries that the position has passed, to look up before they count as lost."""
        return tuple(self._suspects.values())

    def append(self, partition: int, canary: PendingCanary) -> PendingCanary | None:
        """Add *canary*; beyond the limit the oldest one is dropped and returned."""
        self._partitions.setdefault(partition, PendingInPartition()).append(canary)
        if self._pending <= self._limit:
            return None
        oldest = min(
            filter(len, self._partitions.values()),
            key=lambda each: first.sequence if (first := each.first()) else 0,
        )
        return oldest.take_first()

    def take(self, sequence: int, likely_partition: int) -> tuple[int, PendingCanary] | None:
        """Remove and return a canary that arrived, with its partition; None if none is pending."""
        for partition in sorted(self._partitions, key=likely_partition.__ne__):
            canary = self._partitions[partition].take(sequence)
            if canary is not None:
                return partition, canary
        return None

    def clear(self, sequence: int) -> bool:
        """Remove a suspect; False if it was none."""
        return self._suspects.pop(sequence, None) is not None

    def drain(self) -> list[int]:
        """Remove all canaries and positions, which are of a deleted topic; their sequences."""
        drained = list(self._suspects)
        for partition in self._partitions.values():
            while (canary := partition.take_first()) is not None:
                drained.append(canary.sequence)
        self._suspects.clear()
        self._seen.clear()
        return sorted(drained)

    @property
    def _pending(self) -> int:
        return sum(map(len, self._partitions.values()))

    def settle_by_position(
        self, partition: int, next_offset: int, log_start: int, *, target_read: bool
    ) -> list[Absence]:
        """Return the canaries settled by a position and log start; see CanaryLedger.position."""
        before = self._seen.get(partition)
        self._seen[partition] = (next_offset, log_start)
        absences: list[Absence] = []
        if not target_read:
            return absences  # C: the canary may be on the target, beyond what was read

        def settle(canary: PendingCanary) -> bool:
            offset = canary.source_offset
            if offset >= log_start or (before is not None and offset < before[0]):
                if self._confirm_losses:
                    suspect = Suspect(canary.sequence, partition, offset)
                    self._suspects[canary.sequence] = suspect
                else:
                    absences.append(Absence(canary.sequence, expired=False))
                return True
            # Removed from the source. C: one sample cannot distinguish whether it was replicated
            # before.
            if before is None or not (offset < next_offset or offset < before[1]):
                return False
            absences.append(Absence(canary.sequence, expired=True))
            return True

        if partition in self._partitions:
            self._partitions[partition].take_below(max(next_offset, log_start), settle)
        return absences


DEFAULT_RUN_LIMIT = 10_000


class SequenceSet:
    """Sequence numbers as runs of consecutive numbers; days without a lost canary are one run.

    Beyond *run_limit* runs the two oldest are merged, and the numbers between them become members.
    """

    __slots__ = ("_first", "_last", "_run_limit")

    def __init__(self, run_limit: int = DEFAULT_RUN_LIMIT) -> None:
        self._first: list[int] = []
        self._last: list[int] = []
        self._run_limit = run_limit

    def __contains__(self, number: int) -> bool:
        k = bisect_right(self._first, number) - 1
        return k >= 0 and number <= self._last[k]

    @property
    def runs(self) -> int:
        return len(self._first)

    def add(self, number: int) -> bool:
        """Add *number*; False if it is already a member."""
        first, last = self._first, self._last
        if last and number == last[-1] + 1:  # the usual case
            last[-1] = number
            return True
        k = bisect_right(first, number) - 1
        if k >= 0 and number <= last[k]:
            return False
        extends_left = k >= 0 and last[k] == number - 1
        extends_right = k + 1 < len(first) and first[k + 1] == number + 1
        if extends_left and extends_right:
            last[k] = last[k + 1]
            del first[k + 1], last[k + 1]
        elif extends_left:
            last[k] = number
        elif extends_right:
            first[k + 1] = number
        else:
            first.insert(k + 1, number)
            last.insert(k + 1, number)
            if len(first) > self._run_limit:
                del first[1], last[0]
        return True
