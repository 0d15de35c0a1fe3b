"""What was read of one partition in one round, and the rules by which it is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from mm2slo_core.config.exporter_settings import FlowSettings, Isolation
from mm2slo_core.indicators.flow_state import TaskCommits
from mm2slo_core.indicators.replication_lag import open_transaction_records
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_exporter.flow_observation import NewestSync, TailProbe

_LIVE: Final = PositionQuality.LIVE  # an access takes as long as a call until Python 3.12


@dataclass(frozen=True, slots=True)
class FlowRules:
    """The flow settings that affect how a partition is judged."""

    stall_after: float
    flush_interval: float
    exactly_once: bool
    shared_target: bool
    reads_committed: bool
    has_positions: bool = True
    """False for engines other than MirrorMaker 2, whose offsets are not comparable, and for topics
    that it does not replicate."""
    copy_known: bool = True
    may_drop: bool = False
    """Whether a transform may drop records of the topic."""
    awaits_history: bool = False
    """Whether the timeline of earlier processes is being read."""

    @classmethod
    def of(cls, flow: FlowSettings, *, shared_target: bool, awaits_history: bool) -> FlowRules:
        return cls(
            stall_after=flow.stall_after,
            flush_interval=flow.offset_flush_interval,
            exactly_once=flow.exactly_once,
            shared_target=shared_target,
            reads_committed=flow.isolation is Isolation.READ_COMMITTED,
            has_positions=flow.by_mirrormaker,
            awaits_history=awaits_history,
        )

    def of_topic(self, pair: TopicPair) -> FlowRules:
        """The rules of one topic."""
        if pair.target and not pair.may_drop and pair.role is not TopicRole.UNSELECTED:
            return self
        return replace(
            self,
            copy_known=bool(pair.target),
            may_drop=pair.may_drop,
            has_positions=self.has_positions and pair.role is not TopicRole.UNSELECTED,
        )

    def position_period(self, quality: PositionQuality | None) -> float:
        """The longest time between updates of a healthy position of that quality."""
        return 0.0 if quality is _LIVE else self.flush_interval


class PartitionReading(NamedTuple):
    """What was read of one partition in one round; None for what was not read."""

    source_end: int | None
    source_start: int | None
    stable_end: int | None
    target_end: int | None
    target_start: int | None
    committed: int | None
    sync: NewestSync | None
    probe: TailProbe | None
    target_readable: bool = True
    """False: target values are outdated, and MirrorMaker 2 may have advanced since."""
    source_start_read: bool = False
    """Whether the log start was read in this round, after the position."""
    flow_replicated_at: float | None = None
    """When all tasks last ran and the flow replicated something, on any partition."""
    task_commits: TaskCommits | None = None
    """Commits of the partition's task; None if it has none, or if no transform drops records."""

    @property
    def open_transaction_records(self) -> int | None:
        if self.source_end is None or self.stable_end is None:
            return None
        return open_transaction_records(self.source_end, self.stable_end)

    def of_log(self, log: int) -> PartitionReading:
        """The reading without a probe of another log: its offsets meant other records."""
        same = self.probe is None or self.probe.log == log
        return self if same else self._replace(probe=None)

    def restart_position(self, next_offset: int) -> int:
        """Where MirrorMaker 2 would resume after a crash; the position would then go back to it."""
        if self.committed is not None:
            # Connect holds the offset of the last record, not of the next one as consumers do:
            # MirrorSourceTask seeks to it plus one at its start.
            return self.committed + 1
        return next_offset if self.sync is None else self.sync.upstream + 1

    def skip_empty_offsets(self, next_offset: int) -> int:
        """The offset of the next record, skipping offsets without records."""
        probe = self.probe
        if probe is None or not probe.next_offset <= next_offset <= probe.through:
            return next_offset
        if probe.first_offset is None:
            return probe.through
        return max(next_offset, probe.first_offset)

    def record_timestamp(self, offset: int) -> float | None:
        """The timestamp of the record at *offset*, if a probe has read it."""
        if self.probe is not None and self.probe.first_offset == offset:
            return self.probe.first_timestamp
        return None
