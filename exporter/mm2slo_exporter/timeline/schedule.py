"""Which timeline records a round owes: topics that moved or lost, and each topic once a minute."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.topology import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mm2slo_core.retention import SavedLoss
    from mm2slo_core.timeline_record import Column
    from mm2slo_core.topology import Flow
    from mm2slo_exporter.observation import Observation, OffsetsRead

AT_REST_SECONDS = 60.0
"""A topic that does not move is written this often, so that reading back need not go far."""


class _Told(NamedTuple):
    """What of a topic's figures is worth a record of its own when it changes."""

    partitions: tuple[int, ...]
    ends: tuple[int, ...]
    lost: Column


class TimelineSchedule:
    """Remembers what was written last; one per flow.

    A record names the poll before it only where this writer has judged every poll since its last
    record: else that poll may have seen the end already, and the bracket would be wrong.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._written: dict[tuple[Side, str], tuple[float, _Told]] = {}
        self._answered: dict[Side, float] = {}

    def forget(self) -> None:
        """Begin anew: a round was not written, or another process may have written since."""
        self._written.clear()
        self._answered.clear()

    def due(
        self, seen: Observation, losses: Callable[[TopicPartition], SavedLoss | None]
    ) -> Iterator[WatermarkRecord]:
        """Records for what was read in this round; nothing for a side that did not answer."""
        for side, readable, read in (
            (Side.SOURCE, seen.source_readable, seen.source_offsets),
            (Side.TARGET, seen.target_readable, seen.target_offsets),
        ):
            if not readable or read is None or self._answered.get(side) == read.answered_at:
                continue
            self._answered[side] = read.answered_at
            for pair in seen.plan.pairs:
                topic = pair.source if side is Side.SOURCE else pair.target
                record = self._record(seen, side, topic, read, losses)
                if record is not None:
                    yield record

    def _record(
        self,
        seen: Observation,
        side: Side,
        topic: str,
        read: OffsetsRead,
        losses: Callable[[TopicPartition], SavedLoss | None],
    ) -> WatermarkRecord | None:
        view = seen.source if side is Side.SOURCE else seen.target
        known = [
            here
            for number in range(view.topics.get(topic, 0))
            if (here := TopicPartition(topic, number)) in read.ends
        ]
        if not known:
            return None
        ends = tuple(read.ends[here] for here in known)
        at_source = side is Side.SOURCE
        saved = [losses(here) if at_source else None for here in known]
        lost = _told([each.total if each and each.total else None for each in saved])
        # A loss is written at once: a restart within the minute must not forget it.
        partitions = tuple(here.partition for here in known)
        now = _Told(partitions, ends, lost)
        written_at, before = self._written.get((side, topic), (0.0, None))
        if now == before and read.answered_at - written_at < AT_REST_SECONDS:
            return None
        self._written[side, topic] = (read.answered_at, now)
        syncs = [seen.internals.syncs.get(here) if at_source else None for here in known]
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
            log_starts=_told([read.starts.get(here) for here in known]),
            committed=_told([committed.get(here) if at_source else None for here in known]),
            sync_upstreams=_told([None if sync is None else sync.upstream for sync in syncs]),
            sync_downstreams=_told([None if sync is None else sync.downstream for sync in syncs]),
            lost=lost,
            judged_to=_told([each.judged_to if each and each.total else None for each in saved]),
        )


def _told(column: Sequence[int | None]) -> Column:
    """A column; empty when nothing in it is known."""
    return tuple(column) if any(figure is not None for figure in column) else ()
