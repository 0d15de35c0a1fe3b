"""Selects the timeline records to write: changed topics, and each topic once a minute."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from mm2slo_core.timeline_record import PollTimes, Side, WatermarkRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

    from mm2slo_core.timeline_record import Column
    from mm2slo_core.topology import Flow
    from mm2slo_exporter.flow_plan import FlowPlan
    from mm2slo_exporter.observation import Observation, OffsetsRead

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
        if not all(map(read.ends.__contains__, known)):
            known = tuple(each for each in known if each in read.ends)
        if not known:
            return None
        before = self._written[side].get(topic)
        partitions = tuple(map(_number, known))
        ends = tuple(map(read.ends.__getitem__, known))
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
            upstreams = _optional_column(each and each.upstream for each in syncs)
            downstreams = _optional_column(each and each.downstream for each in syncs)
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
    return column if column.count(None) < len(column) else ()
