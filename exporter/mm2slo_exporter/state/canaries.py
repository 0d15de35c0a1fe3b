"""The canaries of a flow: events of the canary process in, settled fates out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.blind import Blindness
from mm2slo_core.canary import CanaryLedger
from mm2slo_core.canary_restore import FormerRun
from mm2slo_core.canary_rules import Arrival, SentCanary
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.events import (
    Arrived,
    Produced,
    ReadThrough,
    Resent,
    Restored,
    Scheduled,
    Trouble,
    Working,
)
from mm2slo_exporter.health import Stage
from mm2slo_exporter.state.histogram import LatencyCounter

if TYPE_CHECKING:
    from mm2slo_core.canary_rules import CanaryRules
    from mm2slo_core.selection import TopicPair
    from mm2slo_exporter.canary.events import Event
    from mm2slo_exporter.observation import Observation


class _Evidence(NamedTuple):
    """A proven position, and the target end offset that must be read before it proves a loss."""

    next_offset: int
    log_start: int
    target_end: int


class CanaryTracker:
    """Feeds the ledger of one flow."""

    def __init__(self, rules: CanaryRules, started_at: float) -> None:
        self.ledger = CanaryLedger(rules)
        self.latencies = LatencyCounter()
        self._resent: list[Resent] = []
        self._found: list[Arrived] = []
        self._restored = False
        self._read_to: dict[int, int] = {}
        self._evidence: dict[int, _Evidence] = {}
        self._alive_at = started_at
        self._deaf = False
        self.ledger.unreachable(Blindness.OURSELVES, started_at)

    def process_started(self, at: float) -> None:
        """Note that the canary process starts anew: nothing is seen until it has restored."""
        self._restored = False
        self._resent.clear()
        self._found.clear()
        self.ledger.unreachable(Blindness.OURSELVES, at)

    def observe(self, seen: Observation, pair: TopicPair | None) -> None:
        """Take one round: what arrived, what the clusters prove, and the time."""
        for event in seen.canary_events:
            self._take(event)
        self._note_reachability(seen)
        if pair is not None and self._restored:
            # Before, arrivals may be held back that the evidence knows nothing of.
            self._weigh_evidence(seen, pair)
        self.latencies.add(self.ledger.take_latencies())
        hears = seen.target_readable and self._restored and not self._deaf
        self.ledger.tick(self._alive_at if hears else seen.at)

    def _take(self, event: Event) -> None:
        match event:
            case Scheduled():
                self.ledger.scheduled(event.sequence, event.partition, event.at)
            case Produced():
                self.ledger.produced(event.sequence, event.partition, event.offset, event.at)
            case Arrived() if self._restored:
                self.ledger.arrived(event.sequence, event.partition, event.at)
            case Arrived():
                self._found.append(event)
            case Resent():
                self._resent.append(event)
            case Restored():
                self._restore(event.at)
            case ReadThrough():
                self._read_to[event.partition] = event.offset
                self._alive_at = max(self._alive_at, event.at)
            case Working(stage=Stage.CANARY_RECEIVE.value):
                self._alive_at = max(self._alive_at, event.at)
                self._deaf = False
            case Trouble(stage=Stage.CANARY_RECEIVE.value):
                self._deaf = True
            case _:
                pass  # told to others; what was never acknowledged the ledger settles as unknown

    def _restore(self, at: float) -> None:
        self._restored = True
        self._alive_at = max(self._alive_at, at)
        self.ledger.reachable(Blindness.OURSELVES, at)
        if not self._resent:
            return
        newest = max(self._resent, key=lambda canary: canary.sequence)
        former = FormerRun(
            floor=newest.floor,
            newest_arrived=newest.newest_arrived,
            died_at=newest.sent_at,
            resumed_at=at,
        )
        self.ledger.restore(
            former,
            [SentCanary(c.sequence, c.partition, c.offset, c.sent_at) for c in self._resent],
            [
                Arrival(
                    sequence=found.sequence,
                    target_partition=found.partition,
                    at=at,
                    not_before=former.died_at,
                )
                for found in self._found
            ],
        )
        self._resent.clear()
        self._found.clear()

    def _note_reachability(self, seen: Observation) -> None:
        for cause, readable, read in (
            (Blindness.SOURCE, seen.source_readable, seen.source_offsets),
            (Blindness.TARGET, seen.target_readable, seen.target_offsets),
        ):
            if cause is Blindness.TARGET and readable and self._deaf:
                # The cluster answers, but not the reader of arrivals: it may be refused.
                self.ledger.unreachable(cause, self._alive_at)
            elif readable:
                self.ledger.reachable(cause, seen.at)
            else:
                # It answered last then; what fell due since may be its fault.
                self.ledger.unreachable(cause, seen.at if read is None else read.answered_at)

    def _weigh_evidence(self, seen: Observation, pair: TopicPair) -> None:
        """Hand positions to the ledger once the target was read beyond what belongs to them."""
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
            here = TopicPartition(pair.source, number)
            end = target.ends.get(TopicPartition(pair.target, number))
            start = source.starts.get(here)
            proven = _proven(seen, here)
            if end is not None and start is not None and proven is not None:
                self._evidence[number] = _Evidence(proven, start, end)


def _proven(seen: Observation, partition: TopicPartition) -> int | None:
    """The first source offset that is not proven to be copied; never an interpolated one."""
    sync = seen.internals.syncs.get(partition)
    known = (seen.internals.committed.get(partition), None if sync is None else sync.upstream)
    return max((last + 1 for last in known if last is not None), default=None)
