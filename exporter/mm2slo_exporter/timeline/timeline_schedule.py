"""Selects the timeline records to write: changed topics, and each topic once a minute."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from mm2slo_core.timeline_record import Column
    from mm2slo_core.topology import Flow
    from mm2slo_exporter.flow_plan import FlowPlan
    from mm2slo_exporter.observation import Observation, OffsetsRead

UNCHANGED_INTERVAL_SECONDS = 60.0
"""An unchanged topic is written this often, so that a restore need not read far back."""


class _WrittenValues(NamedTuple):
    """The values of a topic whose change is written at once."""

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
        self._written: dict[tuple[Side, str], tuple[float, _WrittenValues]] = {}
        self._answered: dict[Side, float] = {}
        self._plan: FlowPlan | None = None

    def reset(self) -> None:
        """Start over: a round was not written, or another process may have written since."""
        self._written.clear()
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
            for pair in seen.plan.pairs:
                topic = pair.source if side is Side.SOURCE else pair.target
                if pair.source in unchanged and not self._is_due(side, topic, read):
                    continue
                record = self._record(seen, side, topic, read)
                if record is not None:
                    yield record

    def _forget_others(self, plan: FlowPlan) -> None:
        """Drop what was written of topics that are no longer replicated."""
        kept = {(Side.SOURCE, pair.source) for pair in plan.pairs}
        kept |= {(Side.TARGET, pair.target) for pair in plan.pairs}
        for key in self._written.keys() - kept:
            del self._written[key]

    def _is_due(self, side: Side, topic: str, read: OffsetsRead) -> bool:
        """Whether an unchanged topic is written again."""
        written_at, _values = self._written.get((side, topic), (0.0, None))
        return read.answered_at - written_at >= UNCHANGED_INTERVAL_SECONDS

    def _record(
        self, seen: Observation, side: Side, topic: str, read: OffsetsRead
    ) -> WatermarkRecord | None:
        view = seen.source if side is Side.SOURCE else seen.target
        known = [
            partition
            for number in range(view.topics.get(topic, 0))
            if (partition := TopicPartition(topic, number)) in read.ends
        ]
        if not known:
            return None
        ends = tuple(read.ends[partition] for partition in known)
        at_source = side is Side.SOURCE
        partitions = tuple(partition.partition for partition in known)
        now = _WrittenValues(partitions, ends)
        _written_at, before = self._written.get((side, topic), (0.0, None))
        if now == before and not self._is_due(side, topic, read):
            return None
        self._written[side, topic] = (read.answered_at, now)
        syncs = [seen.internals.syncs.get(each) if at_source else None for each in known]
        committed = seen.internals.committed
        times = PollTimes(read.requested_at, read.answered_at)
        if before is not None and before.partitions == partitions:
            times = replace(
                times,
                previous_requested_at=read.previous_requested_at,
                previous_answered_at=read.previous_answered_at,
            )
        return WatermarkRecord(
            flow=self._flow,
            side=side,
            topic=topic,
            topic_id=view.topic_ids.get(topic),
            isolation="read_uncommitted",
            times=times,
            partitions=partitions,
            ends=ends,
            log_starts=_optional_column([read.starts.get(each) for each in known]),
            committed=_optional_column(
                [committed.get(each) if at_source else None for each in known]
            ),
            sync_upstreams=_optional_column(
                [None if sync is None else sync.upstream for sync in syncs]
            ),
            sync_downstreams=_optional_column(
                [None if sync is None else sync.downstream for sync in syncs]
            ),
        )


def _optional_column(column: Sequence[int | None]) -> Column:
    """The column; empty when all its values are None."""
    return tuple(column) if any(value is not None for value in column) else ()
