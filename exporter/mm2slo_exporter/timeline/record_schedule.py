"""Selects the records to write on the target: of the timeline and of the flow's state.

Timeline: changed topics, and each topic once a minute. State: what differs from the state topic,
and how soon.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from operator import attrgetter
from typing import Final, NamedTuple
from zlib import crc32

from mm2slo_core.records.timeline_record import Column, PollTimes, Side, WatermarkRecord, is_known
from mm2slo_core.state_record import (
    GroupVerdict,
    RecoveryPoint,
    State,
    StateKey,
    StateKind,
    TopicLosses,
    encode_state,
)
from mm2slo_core.topology import Flow
from mm2slo_exporter.flow_observation import Observation, OffsetsRead
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.state.flow_report import FlowReport

UNCHANGED_INTERVAL_SECONDS: Final = 60
"""An unchanged topic is written this often, so that a restore need not read far back."""
_number = attrgetter("partition")


class _Written(NamedTuple):
    """The last record of a topic; a change of these offsets is written at once."""

    due_at: float
    """When the topic is written again without a change."""
    partitions: tuple[int, ...]
    ends: tuple[int, ...]


class TimelineSchedule:
    """Selects the records of one flow.

    A record contains the preceding poll only if this writer has seen every poll since its last
    record. Otherwise that poll may already have seen the end offset, and the bracket of the
    arrival time would be wrong.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._written: dict[Side, dict[str, _Written]] = {side: {} for side in Side}
        self._answered: dict[Side, float] = {}
        self._plan: FlowPlan | None = None

    def reset(self) -> None:
        """Start over: a round was not written, or another process may have written since."""
        for written in self._written.values():
            written.clear()
        self._answered.clear()

    def due(
        self,
        seen: Observation,
        unchanged: AbstractSet[str] = frozenset(),
    ) -> Iterator[WatermarkRecord]:
        """The records to write for this round; none for a side that was not read.

        *unchanged*: source topics whose offsets equal those of the round before.
        """
        if seen.plan is not self._plan:
            self._plan = seen.plan
            self._forget_others(seen.plan)
        for side, readable, read in (
            (Side.SOURCE, seen.source_readable, seen.source_offsets),
            (Side.TARGET, seen.target_readable, seen.target_offsets),
        ):
            if not readable or read is None or self._answered.get(side) == read.answered_at:
                continue
            if read.answered_at < self._answered.get(side, 0.0):
                self.reset()  # the clock was set back
            self._answered[side] = read.answered_at
            times = PollTimes(
                read.requested_at,
                read.answered_at,
                read.previous_requested_at,
                read.previous_answered_at,
            )
            written = self._written[side]
            for pair in seen.plan.pairs:
                topic = pair.source if side is Side.SOURCE else pair.target
                if pair.source in unchanged:
                    last = written.get(topic)
                    if last is not None and read.answered_at < last.due_at:
                        continue
                record = self._record(seen, side, topic, read, times)
                if record is not None:
                    yield record

    def _forget_others(self, plan: FlowPlan) -> None:
        """Drop what was written of topics that are no longer replicated."""
        for side, kept in (
            (Side.SOURCE, {pair.source for pair in plan.pairs}),
            (Side.TARGET, {pair.target for pair in plan.pairs}),
        ):
            written = self._written[side]
            for topic in written.keys() - kept:
                del written[topic]

    def _record(
        self, seen: Observation, side: Side, topic: str, read: OffsetsRead, times: PollTimes
    ) -> WatermarkRecord | None:
        at_source = side is Side.SOURCE
        view = seen.source if at_source else seen.target
        known = seen.plan.partitions(topic, view.topics.get(topic, 0))
        try:
            ends = tuple(map(read.ends.__getitem__, known))
        except KeyError:
            known = tuple(each for each in known if each in read.ends)
            ends = tuple(map(read.ends.__getitem__, known))
        if not known:
            return None
        before = self._written[side].get(topic)
        partitions = tuple(map(_number, known))
        is_same = before is not None and before[1:] == (partitions, ends)
        if before is not None and is_same and read.answered_at < before.due_at:
            return None
        is_next = before is not None and before.partitions == partitions
        self._written[side][topic] = _Written(_due_at(topic, read), partitions, ends)
        committed: Column = ()
        upstreams: Column = ()
        downstreams: Column = ()
        if at_source:
            committed = _optional_column(map(seen.internals.committed.get, known))
            syncs = list(map(seen.internals.syncs.get, known))
            upstreams = _optional_column([each and each.upstream for each in syncs])
            downstreams = _optional_column([each and each.downstream for each in syncs])
        return WatermarkRecord(
            flow=self._flow,
            side=side,
            topic=topic,
            topic_id=view.topic_ids.get(topic),
            isolation="read_uncommitted",
            times=times if is_next else PollTimes(read.requested_at, read.answered_at),
            partitions=partitions,
            ends=ends,
            log_starts=_optional_column(map(read.starts.get, known)),
            committed=committed,
            sync_upstreams=upstreams,
            sync_downstreams=downstreams,
        )


def _due_at(topic: str, read: OffsetsRead) -> float:
    """At most a minute later; topics are spread over it, as writing all at once takes memory."""
    shift = crc32(topic.encode()) % UNCHANGED_INTERVAL_SECONDS
    passed = (read.answered_at + shift) % UNCHANGED_INTERVAL_SECONDS
    return read.answered_at + UNCHANGED_INTERVAL_SECONDS - passed


def _optional_column(values: Iterable[int | None]) -> Column:
    """The column; empty when all its values are None."""
    column = tuple(values)
    return column if is_known(column) else ()


UPDATE_INTERVAL_SECONDS = 60.0
"""A group whose verdict is the same is written this often, and a record that was not read back."""


class _Sent(NamedTuple):
    at: float
    held: State | None
    """What the topic held then: another object once a record was read back."""


class StateSchedule:
    """Selects the records of one flow."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow.slug
        self._sent: dict[StateKey, _Sent] = {}

    def reset(self) -> None:
        """Start over: a record was not written, or another process may have written since."""
        self._sent.clear()

    def due(
        self, seen: Observation, report: FlowReport, losses: Mapping[str, TopicLosses]
    ) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values to write for this round; *losses* are those that are not saved yet."""
        held = seen.internals.saved.records
        wanted = dict(self._wanted(seen, report, losses, held))
        for key in self._sent.keys() - wanted.keys():
            del self._sent[key]
        for key, state in wanted.items():
            before = held.get(key)
            if state != before and self._is_due(key, state, before, seen.at):
                self._sent[key] = _Sent(seen.at, before)
                yield key.encode(), None if state is None else encode_state(state)

    def _is_due(self, key: StateKey, state: State | None, held: State | None, at: float) -> bool:
        sent = self._sent.get(key)
        # In either direction: the clock may be set back.
        if sent is None or abs(at - sent.at) >= UPDATE_INTERVAL_SECONDS:
            return True
        return sent.held is not held and _is_urgent(state, held)

    def _wanted(
        self,
        seen: Observation,
        report: FlowReport,
        losses: Mapping[str, TopicLosses],
        held: Mapping[StateKey, State],
    ) -> Iterator[tuple[StateKey, State | None]]:
        for topic, found in losses.items():
            yield from found.split(self._flow, topic)
        if not report.ready:
            return
        if report.recovery_point is not None:
            yield StateKey(self._flow, StateKind.RECOVERY, ""), report.recovery_point
        for group in report.groups:
            yield self._group(group.group), group.verdict
        if seen.source_readable and seen.source.groups_complete and seen.target.groups_complete:
            yield from self._gone({self._group(group.group) for group in report.groups}, held)

    def _group(self, name: str) -> StateKey:
        return StateKey(self._flow, StateKind.GROUP, name)

    def _gone(
        self, present: set[StateKey], held: Iterable[StateKey]
    ) -> Iterator[tuple[StateKey, None]]:
        for key in held:
            if key.kind is StateKind.GROUP and key not in present:
                yield key, None


def _is_urgent(state: State | None, held: State | None) -> bool:
    match state:
        case TopicLosses() | RecoveryPoint():
            return True
        case GroupVerdict():
            return not state.is_same(held)
    return False
