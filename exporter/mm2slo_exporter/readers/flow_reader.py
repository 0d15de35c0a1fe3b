"""Reads the end and start offsets of one flow in rounds, in its own thread.

An unreachable cluster delays a round by its full timeout only now and then, so that data of the
other side stays current.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol, TypeAlias

from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import CanaryEvent
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.flow_observation import (
    ClusterView,
    InternalsView,
    Observation,
    OffsetsRead,
    TailProbe,
)
from mm2slo_exporter.flow_plan import FlowPlan, PartitionCache
from mm2slo_exporter.supervised_thread import Loop, SupervisedThread
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.partition_offsets import Isolation, OffsetReading

_STRETCH = 2
"""Factor of the interval after a round that was not evaluated; three polls make a flow stale."""


class FlowSources(Protocol):
    """The newest results of other readers; none of these methods blocks."""

    def clusters(self) -> tuple[ClusterView, ClusterView]:
        """Views of source and target cluster."""

    def internals(self) -> InternalsView:
        """State from the internal topics."""

    def probes(self) -> Mapping[TopicPartition, TailProbe]:
        """First records at positions that did not advance."""

    def canary_events(self) -> tuple[CanaryEvent, ...]:
        """Events since the last call."""


def _is_visible(view: ClusterView, topics: Iterable[str]) -> bool:
    """Whether the cluster's topics were read and at least one of *topics* is authorized."""
    if view.topics_read_at is None:
        return False
    if not view.hidden:
        return True
    existing = {topic for topic in topics if topic in view.topics}
    return not existing or not existing <= view.hidden


class FlowReader:
    """Passes an Observation per round to *deliver*.

    *deliver* returns whether the preceding round was not evaluated: the next one is then later.
    """

    def __init__(
        self,
        name: str,
        sources: FlowSources,
        plan: Callable[[ClusterView, InternalsView], FlowPlan],
        deliver: Callable[[Observation], bool],
        *,
        source: SideReader,
        target: SideReader,
        every: float,
        on_failure: Callable[[Loop], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._target = target
        self._sources = sources
        self._plan = plan
        self._deliver = deliver
        self._on_source = PartitionCache(FlowPlan.source_partitions)
        self._on_target = PartitionCache(FlowPlan.target_partitions)
        self._every = every
        self._clock = clock
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = SupervisedThread(Loop.FLOW, name, self._run, self._stopping, on_failure)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; waits briefly for a request in progress."""
        self._stopping.set()
        self._wake.set()
        self._thread.join()

    def read_soon(self) -> None:
        """Read the next round at once: there are other topics."""
        self._wake.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            started = time.monotonic()
            is_behind = self._deliver(self.read())
            every = self._every * _STRETCH if is_behind else self._every
            # A round that was not evaluated is late in any case.
            pause = self._stopping if is_behind else self._wake
            pause.wait(max(0.0, every - (time.monotonic() - started)))
            self._wake.clear()

    def read(self) -> Observation:
        """Read one round; the order of requests keeps lag from being negative."""
        source_view, target_view = self._sources.clusters()
        internals = self._sources.internals()
        plan = self._plan(source_view, internals)
        # The source last: what was replicated by the time of the other reads is below its end.
        self._target.read(self._on_target.get(plan, target_view.topics))
        self._source.read(self._on_source.get(plan, source_view.topics))
        return Observation(
            at=self._clock(),
            plan=plan,
            source=source_view,
            target=target_view,
            internals=internals,
            source_offsets=self._source.newest,
            target_offsets=self._target.newest,
            source_readable=self._source.readable
            and _is_visible(source_view, (pair.source for pair in plan.pairs)),
            target_readable=self._target.readable
            and _is_visible(target_view, (pair.target for pair in plan.pairs)),
            probes=self._sources.probes(),
            canary_events=self._sources.canary_events(),
        )


READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"
Ends: TypeAlias = "Mapping[TopicPartition, int]"
_UNREAD: Final = OffsetsRead()
_SHORT_TIMEOUT_SECONDS = 1.0
_FULL_TIMEOUT_EVERY_SECONDS = 30.0


class OffsetSource(Protocol):
    """The part of a cluster client that reads offsets."""

    alias: str

    def end_offsets(
        self, partitions: Sequence[TopicPartition], isolation: Isolation = ..., timeout: float = ...
    ) -> OffsetReading:
        """High watermarks; last stable offsets for read_committed."""

    def start_offsets(
        self, partitions: Sequence[TopicPartition], timeout: float = ...
    ) -> OffsetReading:
        """Log start offsets."""


class SideReader:
    """End and start offsets of one side of a flow; start offsets are read less often."""

    def __init__(
        self,
        client: OffsetSource,
        health: CollectionHealth,
        *,
        starts_every: float,
        observe_ends: Callable[[Ends, Ends], None] = lambda _before, _ends: None,
        stable_ends: bool = False,
        timeout: float = 5.0,
        clock: Callable[[], float] = time.time,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """*observe_ends* gets the preceding and the new end offsets of each successful round.

        *timer* decides what is due: the clock may be set back.
        """
        self._client = client
        self._observe_ends = observe_ends
        self._health = health
        self._starts_every = starts_every
        self.stable_ends = stable_ends
        """Whether the last stable offsets are read, too."""
        self._timeout = timeout
        self._clock = clock
        self._timer = timer
        self._starts_due = 0.0
        self._starts: dict[TopicPartition, int] = {}
        self._starts_read_at = 0.0
        self._ends_failing = True
        self._failing = False
        self._full_timeout_at = 0.0
        self.newest: OffsetsRead | None = None

    @property
    def readable(self) -> bool:
        """Whether the newest round succeeded."""
        return self.newest is not None and not self._failing

    def read(self, partitions: Sequence[TopicPartition]) -> None:
        """Read one round; on failure `newest` is kept and `readable` is False.

        Start offsets are read before end offsets, so that none is greater in the same log.
        """
        if not partitions:
            self.newest, self._starts, self._failing = self._empty(), {}, False
            return
        if self._timer() >= self._starts_due and not self._ends_failing:
            # Recorded there; the ends decide about the round.
            with suppress(KafkaOperationError):
                self._starts = self._read_starts(partitions, is_full=True)
        try:
            self._read_ends(partitions)
        except KafkaOperationError:
            if not self._failing or self._timer() >= self._full_timeout_at:
                self._full_timeout_at = self._timer() + _FULL_TIMEOUT_EVERY_SECONDS
            self._failing = True
        else:
            self._failing = False

    @property
    def _current_timeout(self) -> float:
        """A short timeout for a failing cluster, so that it does not delay the other side.

        Every 30 s it gets the full timeout: it may be slow, not unreachable.
        """
        if not self._failing or self._timer() >= self._full_timeout_at:
            return self._timeout
        return min(self._timeout, _SHORT_TIMEOUT_SECONDS)

    def _empty(self) -> OffsetsRead:
        now = self._clock()
        before = self.newest
        return OffsetsRead(
            requested_at=now,
            answered_at=now,
            previous_requested_at=None if before is None else before.requested_at,
            previous_answered_at=None if before is None else before.answered_at,
        )

    def _read_ends(self, partitions: Sequence[TopicPartition]) -> None:
        before = self.newest
        last = _UNREAD if before is None else before
        self._ends_failing = True
        with self._health.stage(self._client.alias, CollectionStage.END_OFFSETS):
            stable, reading = self._request_ends(partitions)
            self._note(CollectionStage.END_OFFSETS, reading, is_full=True)
        self._ends_failing = False
        ends: Ends = reading.offsets
        answered_at = reading.answered_at
        replaced = _replaced(ends, stable, self._starts, last)
        if replaced:
            is_full = len(replaced) == len(partitions)
            stable_again, again, answered_at = self._read_again(
                replaced, ends, stable, answered_at, is_full=is_full
            )
            others = ends.keys() - replaced
            ends = {p: end for p, end in ends.items() if p in others} | again
            stable = {p: end for p, end in stable.items() if p in others} | stable_again
        if not self._starts.keys() <= ends.keys():
            # One that cannot be read may be another log when it can.
            self._starts = {p: start for p, start in self._starts.items() if p in ends}
        if not stable.keys() <= ends.keys():
            # The topic was deleted between the two requests.
            stable = {p: end for p, end in stable.items() if p in ends}
        if last.ends == ends:
            ends = last.ends  # only one is kept, and comparisons find the same object
        self._observe_ends(last.ends, ends)
        self.newest = OffsetsRead(
            ends=ends,
            starts=self._starts,
            stable_ends=stable,
            requested_at=reading.requested_at,
            answered_at=answered_at,
            previous_requested_at=None if before is None else before.requested_at,
            previous_answered_at=None if before is None else before.answered_at,
            starts_read_at=self._starts_read_at,
        )

    def _read_again(
        self,
        replaced: Sequence[TopicPartition],
        ends: Ends,
        stable: Ends,
        answered_at: float,
        *,
        is_full: bool,
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int], float]:
        """Starts, then ends again, of *replaced*: they are of one log unless it changed again.

        Returns last stable offsets, high watermarks and the time of the answer. Partitions of
        which nothing can be read, as of a topic that is being deleted, fail without the others.
        """
        try:
            starts = self._read_starts(replaced, is_full=is_full)
            with self._health.stage(self._client.alias, CollectionStage.END_OFFSETS):
                stable_again, again = self._request_ends(replaced)
        except KafkaOperationError:
            if is_full:
                raise
            others = self._starts.keys() - replaced
            self._starts = {p: start for p, start in self._starts.items() if p in others}
            return {}, {}, answered_at
        self._starts = self._starts | starts
        before = OffsetsRead(ends, {}, stable)
        replaced_again = set(_replaced(again.offsets, stable_again, self._starts, before))
        self._starts = {p: at for p, at in self._starts.items() if p not in replaced_again}
        stable = {p: at for p, at in stable_again.items() if p not in replaced_again}
        return stable, again.offsets, again.answered_at

    def _request_ends(self, partitions: Sequence[TopicPartition]) -> tuple[Ends, OffsetReading]:
        """Last stable offsets, if they are read, and high watermarks, which are never less."""
        # In this order: the last stable offset may pass a high watermark that was read before it.
        stable: Ends = {}
        if self.stable_ends:
            stable = self._client.end_offsets(
                partitions, READ_COMMITTED, self._current_timeout
            ).offsets
        return stable, self._client.end_offsets(partitions, READ_UNCOMMITTED, self._current_timeout)

    def _read_starts(
        self, partitions: Sequence[TopicPartition], *, is_full: bool
    ) -> dict[TopicPartition, int]:
        with self._health.stage(self._client.alias, CollectionStage.START_OFFSETS):
            reading = self._client.start_offsets(partitions, self._current_timeout)
            self._note(CollectionStage.START_OFFSETS, reading, is_full=is_full)
        if is_full:
            self._starts_read_at = self._clock()
            self._starts_due = self._timer() + self._starts_every
        return reading.offsets

    def _note(self, stage: CollectionStage, reading: OffsetReading, *, is_full: bool) -> None:
        """Record partitions without an offset; the round succeeds as a whole.

        Raises KafkaOperationError when all of the side (*is_full*) failed, as from a hanging or
        unauthorized cluster.
        """
        alias = self._client.alias
        kinds = Counter(reading.errors.values())
        if is_full and not reading.offsets and kinds and kinds.keys() != {ErrorKind.UNKNOWN_TOPIC}:
            kind, count = kinds.most_common(1)[0]
            raise KafkaOperationError(
                kind,
                cluster=alias,
                operation=f"reading {stage}",
                detail=f"all {count} partitions failed",
            )
        failures = (
            (kind, f"reading {stage} of {partition} on cluster {alias} failed ({kind})")
            for partition, kind in reading.errors.items()
        )
        self._health.record_partial_failures(alias, stage, failures)


def _replaced(ends: Ends, stable: Ends, starts: Ends, before: OffsetsRead) -> list[TopicPartition]:
    """Partitions whose start or stable end may be of another log than their end.

    A start is unknown or greater than an end, an end is lower than before, or the stable end, which
    is read first, is beyond the other: the log was truncated or re-created in between.
    """
    if ends == before.ends and stable == before.stable_ends and starts is before.starts:
        return []
    ends_before, stable_before = before.ends, before.stable_ends
    return [
        partition
        for partition, end in ends.items()
        if (start := starts.get(partition)) is None
        or end < start
        or end < ends_before.get(partition, 0)
        or not max(start, stable_before.get(partition, 0)) <= stable.get(partition, end) <= end
    ]
