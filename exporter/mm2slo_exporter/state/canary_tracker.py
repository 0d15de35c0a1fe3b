"""Tracks canaries and MirrorMaker 2's heartbeats: turns events into outcomes and latencies.

Events come from the canary process; latencies are counted into the catalogue's buckets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from mm2slo_core.catalogue.metric import LATENCY_BUCKETS
from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.indicators.canary_ledger import CanaryLedger
from mm2slo_core.indicators.canary_rules import (
    CanaryArrival,
    CanaryRules,
    PreviousRun,
    SentCanary,
    UnobservableCause,
)
from mm2slo_core.indicators.sli_counters import DEFAULT_HEARTBEAT_AGE
from mm2slo_core.topic_selection import TopicPair
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import (
    Arrived,
    CanaryEvent,
    EarlierCanary,
    HeartbeatSeen,
    InstanceNamed,
    LedgerState,
    Produced,
    ReadUpTo,
    RestoreFinished,
    Scheduled,
    SourceTopicRecreated,
    StageFailed,
    StageSucceeded,
    TargetReadRestarted,
)
from mm2slo_exporter.collection_health import CollectionStage
from mm2slo_exporter.flow_observation import Observation
from mm2slo_exporter.state.flow_report import HeartbeatState, LatencyHistogram


class _PendingEvidence(NamedTuple):
    """A proven position; it proves a loss once the target was read up to `target_end`."""

    next_offset: int
    log_start: int
    target_end: int


class CanaryTracker:
    """Passes canary events and evidence of one flow to its ledger."""

    def __init__(
        self, rules: CanaryRules, started_at: float, previous: CanaryTracker | None = None
    ) -> None:
        """Continues the counts of *previous*, before a reload."""
        self.ledger: CanaryLedger = CanaryLedger(rules, previous.ledger if previous else None)
        self.latencies: LatencyCounter = previous.latencies if previous else LatencyCounter()
        self._earlier_canaries: list[EarlierCanary] = []
        self._earlier_arrivals: list[Arrived] = []
        self._restored = False
        self._instance: str | None = None
        self._read_to: dict[int, int] = {}
        self._evidence: dict[int, _PendingEvidence] = {}
        self._received_until = self._started_at = started_at
        self._receive_failing = False
        self._sending_since: float | None = None
        self._settled_to: float | None = None
        self.ledger.unreachable(UnobservableCause.EXPORTER, started_at)

    @property
    def ledger_state(self) -> LedgerState:
        """What is settled; nothing is known of earlier canaries before they are restored."""
        if not self._restored:
            return LedgerState()
        return LedgerState(self.ledger.floor, self.ledger.newest_arrived, self._settled_to)

    def process_started(self, at: float) -> None:
        """The canary process starts: arrivals are unobservable until it has restored its state."""
        self._restored = False
        self._sending_since = None
        self._started_at = at
        self._earlier_canaries.clear()
        self._earlier_arrivals.clear()
        self.ledger.unreachable(UnobservableCause.EXPORTER, at)

    def observe(
        self, seen: Observation, pair: TopicPair | None, *, clock_set_back: bool = False
    ) -> None:
        """Process the canary events and evidence of one round."""
        for event in seen.canary_events:
            self._take(event)
        if clock_set_back:  # maybe between two of the events
            self.ledger.forget_times()
            self._received_until = seen.at
            if not self._restored:
                self.ledger.unreachable(UnobservableCause.EXPORTER, seen.at)
        self._update_reachability(seen)
        if pair is not None and self._restored:
            # Before `RestoreFinished`, arrivals may be buffered that contradict the evidence.
            self._apply_evidence(seen, pair)
        self.latencies.add(self.ledger.take_latencies())
        is_receiving = seen.target_readable and self._restored and not self._receive_failing
        self._settled_to = self._received_until if is_receiving else seen.at
        self.ledger.tick(self._settled_to)

    def _take(self, event: CanaryEvent) -> None:
        match event:
            case Scheduled():
                self._sending_since = self._sending_since or event.at
                self.ledger.scheduled(event.sequence, event.partition, event.at)
            case Produced():
                self.ledger.produced(event.sequence, event.partition, event.offset, event.at)
            case Arrived():
                self._take_arrival(event)
            case EarlierCanary():
                self._earlier_canaries.append(event)
            case RestoreFinished():
                self._restore(event.at)
            case InstanceNamed():
                if self._instance not in (None, event.instance):
                    self.ledger.abandon()
                self._instance = event.instance
            case _:
                self._take_progress(event)

    def _take_arrival(self, event: Arrived) -> None:
        if not self._restored:
            self._earlier_arrivals.append(event)
        elif not (event.reread and self.ledger.has_arrived(event.sequence)):
            self.ledger.arrived(event.sequence, event.partition, event.at)

    def _take_progress(self, event: CanaryEvent) -> None:
        """Note what the receiver has read, and changes of what it reads."""
        match event:
            case ReadUpTo():
                self._read_to[event.partition] = event.offset
                self._received_until = max(self._received_until, event.at)
            case SourceTopicRecreated():
                self.ledger.source_recreated()
                self._evidence.clear()
            case TargetReadRestarted():
                self._read_to.clear()
                self._evidence.clear()
            case StageSucceeded(stage=CollectionStage.CANARY_RECEIVE.value):
                self._received_until = max(self._received_until, event.at)
                self._receive_failing = False
            case StageFailed(stage=CollectionStage.CANARY_RECEIVE.value):
                self._receive_failing = True
            case _:
                pass  # handled elsewhere; the ledger settles unacknowledged canaries as unknown

    def _restore(self, at: float) -> None:
        self._restored = True
        self._received_until = max(self._received_until, at)
        self.ledger.reachable(UnobservableCause.EXPORTER, at)
        if self._earlier_canaries:
            self._restore_earlier_canaries(at)
        earlier = {canary.sequence for canary in self._earlier_canaries}
        for found in self._earlier_arrivals:
            if found.sequence not in earlier:  # sent by this process while the target was away
                self.ledger.arrived(
                    found.sequence, found.partition, found.at, not_before=self._started_at
                )
        self._earlier_canaries.clear()
        self._earlier_arrivals.clear()

    def _restore_earlier_canaries(self, at: float) -> None:
        # A process that was never scraped has settled nothing.
        knowing = [each for each in self._earlier_canaries if each.floor is not None]
        newest = max(knowing or self._earlier_canaries, key=lambda canary: canary.sequence)
        previous_run = PreviousRun(
            floor=newest.floor,
            newest_arrived=newest.newest_arrived,
            settled_to=newest.settled_to,
            started_at=self._started_at,
            resumed_at=at,
            sending_since=self._sending_since or at,
        )
        sent_at = {canary.sequence: canary.sent_at for canary in self._earlier_canaries}
        unseen_to = newest.settled_to or 0.0
        self.ledger.restore(
            previous_run,
            [
                SentCanary(c.sequence, c.partition, c.offset, c.sent_at)
                for c in self._earlier_canaries
            ],
            [
                CanaryArrival(
                    sequence=found.sequence,
                    target_partition=found.partition,
                    at=found.at,
                    not_before=max(unseen_to, sent_at[found.sequence])
                    if found.reread
                    else found.at,
                )
                for found in self._earlier_arrivals
                if found.sequence in sent_at
            ],
        )

    def _update_reachability(self, seen: Observation) -> None:
        for cause, readable, read in (
            (UnobservableCause.SOURCE, seen.source_readable, seen.source_offsets),
            (UnobservableCause.TARGET, seen.target_readable, seen.target_offsets),
        ):
            if cause is UnobservableCause.TARGET and readable and self._receive_failing:
                # The cluster answers, but reading arrivals fails: it may not be authorized.
                self.ledger.unreachable(cause, self._received_until)
            elif readable:
                self.ledger.reachable(cause, seen.at)
            else:
                # Unobservable since the last answer.
                self.ledger.unreachable(cause, seen.at if read is None else read.answered_at)

    def _apply_evidence(self, seen: Observation, pair: TopicPair) -> None:
        """Pass positions to the ledger once the target was read up to their target end offset."""
        for number, held in list(self._evidence.items()):
            if self._read_to.get(number, -1) >= held.target_end:
                self.ledger.position(number, held.next_offset, held.log_start, target_read=True)
                del self._evidence[number]
        source, target = seen.source_offsets, seen.target_offsets
        if source is None or target is None or not (seen.source_readable and seen.target_readable):
            return
        for number in range(seen.source.topics.get(pair.source, 0)):
            if number in self._evidence:
                continue
            partition = TopicPartition(pair.source, number)
            end = target.ends.get(TopicPartition(pair.target, number))
            start = source.starts.get(partition)
            proven = _proven_position(seen, partition)
            if end is None or start is None or proven is None:
                continue
            # A position beyond the end is of a deleted topic of the same name.
            if proven <= source.ends.get(partition, -1):
                self._evidence[number] = _PendingEvidence(proven, start, end)


def _proven_position(seen: Observation, partition: TopicPartition) -> int | None:
    """The first source offset not proven to be replicated; never interpolated."""
    # Both follow the target's acknowledgement: MirrorSourceTask sends a sync in commitRecord(), and
    # Connect commits offsets of acknowledged records alone (SubmittedRecords).
    sync = seen.internals.syncs.get(partition)
    known = (seen.internals.committed.get(partition), None if sync is None else sync.upstream)
    return max((last + 1 for last in known if last is not None), default=None)


_GAP_SHARE = 1.5
"""Gaps count from 1.5 intervals: emission times vary, and a late heartbeat is not missing."""


class HeartbeatTracker:
    """Age, latency and gaps of the heartbeats that arrive on the target."""

    def __init__(self, flow: FlowSettings) -> None:
        self.flow = flow
        self._newest: dict[str, float] = {}
        self._arrived_at: float | None = None
        self._received = 0
        self._missing = 0
        self._latencies = LatencyCounter()

    def observe(self, beat: HeartbeatSeen) -> None:
        """Process one heartbeat; one that existed before reading started has no latency."""
        before = self._newest.get(beat.emitter)
        # Heartbeats of a restarted task, or of two during a rebalance, may come out of order.
        self._newest[beat.emitter] = max(beat.emitted_at, before or beat.emitted_at)
        # Not by its emission, which is by the clock of MirrorMaker 2: if that is ahead, a dead flow
        # would look alive. Nothing else shows when one arrived that existed before.
        arrived_at = min(beat.emitted_at, beat.at) if beat.replayed else beat.at
        self._arrived_at = max(arrived_at, self._arrived_at or arrived_at)
        if beat.replayed:
            return
        self._received += 1
        self._latencies.add((beat.at - beat.emitted_at,))
        interval = self.flow.heartbeat_interval
        if before is not None and beat.emitted_at - before > _GAP_SHARE * interval:
            self._missing += round((beat.emitted_at - before) / interval) - 1

    def shift(self, seconds: float) -> None:
        """Keep the age: the clock was set by *seconds*."""
        if self._arrived_at is not None:
            self._arrived_at += seconds

    def state(self, at: float) -> HeartbeatState:
        if self._arrived_at is None:
            return HeartbeatState(present=False)
        # Events of this round may be younger than its time.
        age = max(0.0, at - self._arrived_at)
        # Those that arrive although they are disabled, of whatever emitter, are as good as any.
        present = self.flow.emit_heartbeats or age <= DEFAULT_HEARTBEAT_AGE
        return HeartbeatState(
            present=present,
            newest_at=max(self._newest.values()) if present else None,
            arrived_at=self._arrived_at if present else None,
            age_seconds=age if present else None,
            received_total=self._received,
            missing_total=self._missing,
        )

    def latency(self) -> LatencyHistogram:
        """Latencies of the heartbeats whose arrival was observed."""
        return self._latencies.read()


class LatencyCounter:
    """A cumulative histogram. Negative latencies (clock skew) count in the first bucket."""

    def __init__(self) -> None:
        self._counts = [0] * (len(LATENCY_BUCKETS) + 1)
        self._total = 0.0

    def add(self, latencies: Iterable[float]) -> None:
        """Count *latencies* (seconds)."""
        for seconds in latencies:
            self._counts[bisect_left(LATENCY_BUCKETS, seconds)] += 1
            self._total += seconds

    def read(self) -> LatencyHistogram:
        return LatencyHistogram(tuple(self._counts), self._total)
