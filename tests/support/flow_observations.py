"""Hand-made observations of a flow us->eu: set the state of the clusters, then `look`."""

from dataclasses import dataclass, field
from typing import Any

from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.indicators.group_readiness import OffsetMap
from mm2slo_core.kafka_permissions import SYNC_GROUP_OFFSETS
from mm2slo_core.mm2_config.running_settings import RunningConnectors
from mm2slo_core.offset_translation import SyncRuns
from mm2slo_core.records.connect_records import ConnectorConfig
from mm2slo_core.records.timeline_record import PollTimes, Side, WatermarkRecord
from mm2slo_core.state_record import State, StateKey, StateKind
from mm2slo_core.topic_selection import TopicPair, TopicRole
from mm2slo_core.topology import Flow, TopicPartition
from mm2slo_exporter.canary.canary_messages import CanaryEvent
from mm2slo_exporter.flow_observation import (
    ClusterView,
    InternalsView,
    NewestSync,
    Observation,
    OffsetsRead,
    SavedState,
    TailProbe,
)
from mm2slo_exporter.flow_plan import FlowPlan
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.state.flow_tracker import FlowTracker


def flow_config(**settings: Any) -> FlowConfig:
    """The flow us->eu with defaults except for *settings*."""
    return FlowConfig.model_validate({"flow": "us->eu", **settings})


def past_poll(topic_id: str | None, end: int, times: PollTimes) -> WatermarkRecord:
    """A timeline record of partition 0 of *orders* on the source."""
    return WatermarkRecord(
        flow=Flow("us", "eu"),
        side=Side.SOURCE,
        topic="orders",
        topic_id=topic_id,
        isolation="read_uncommitted",
        times=times,
        partitions=(0,),
        ends=(end,),
    )


def checkpoint_connector(*, syncs_group_offsets: bool) -> RunningConnectors:
    """The connectors of a flow that commits the groups' offsets on the target, or does not."""
    settings = {SYNC_GROUP_OFFSETS: str(syncs_group_offsets).lower()}
    name = "MirrorCheckpointConnector"
    return RunningConnectors({name: ConnectorConfig(name, settings)})


def lost_records(report: FlowReport) -> int:
    """The losses of the topics that exist, saved or not."""
    return sum(each.lost_records_total + each.pending_lost_records for each in report.topics)


@dataclass
class Log:
    """One source partition, its copy, and MirrorMaker 2's records of it; None means unknown."""

    start: int | None = 0
    end: int | None = 0
    stable: int | None = None
    target_start: int | None = 0
    target_end: int | None = 0
    committed: int | None = None
    sync: NewestSync | None = None
    probe: TailProbe | None = None

    def live(self, next_offset: int, end: int) -> None:
        """Set a flow that has replicated up to *next_offset* of *end*, one for one."""
        self.end = end
        self.sync = NewestSync(0, 0, 900.0)
        self.target_end = next_offset


@dataclass
class Scene:
    """The current state of both clusters; `look` reads one round."""

    logs: dict[TopicPartition, Log] = field(default_factory=dict)
    roles: dict[str, TopicRole] = field(default_factory=dict)
    source_readable: bool = True
    target_readable: bool = True
    source: dict[str, Any] = field(default_factory=dict)
    """More fields of the source's ClusterView."""
    target: dict[str, Any] = field(default_factory=dict)
    internals: dict[str, Any] = field(default_factory=dict)
    """More fields of the InternalsView."""
    missing_copies: set[str] = field(default_factory=set)
    may_drop: set[str] = field(default_factory=set)
    """Topics of which a transform may drop records."""
    copies: dict[str, str] = field(default_factory=dict)
    """Names of copies that a transform renames; empty if not known."""
    state: dict[StateKey, State] = field(default_factory=dict)
    """The records of the state topic."""
    _source_read: OffsetsRead | None = None
    _target_read: OffsetsRead | None = None

    def add(self, topic: str, partitions: int = 1, role: TopicRole = TopicRole.DATA) -> Log:
        """Create a topic; returns its first partition."""
        self.roles[topic] = role
        for number in range(partitions):
            self.logs[TopicPartition(topic, number)] = Log()
        return self.logs[TopicPartition(topic, 0)]

    def drop(self, topic: str) -> None:
        """Delete a topic on the source."""
        del self.roles[topic]
        for partition in [partition for partition in self.logs if partition.topic == topic]:
            del self.logs[partition]

    def save(self, kind: str, name: str, state: State) -> None:
        """Write a state record."""
        self.state[StateKey("us-to-eu", StateKind(kind), name)] = state

    def save_losses(self, tracker: FlowTracker) -> None:
        """Write the losses that are not in the state topic, as the leader does."""
        for topic, losses in tracker.topics.unsaved_losses().items():
            self.state |= losses.split("us-to-eu", topic)

    def look(self, at: float, *events: CanaryEvent) -> Observation:
        """Read one round; the requests take from 0.2 to 0.1 seconds before *at*."""
        pairs = tuple(
            TopicPair(name, self.copies.get(name, f"us.{name}"), role, name in self.may_drop)
            for name, role in self.roles.items()
        )
        counts = {
            name: sum(partition.topic == name for partition in self.logs) for name in self.roles
        }
        if self.source_readable:
            self._source_read = self._read(at, self._source_read, copies=False)
        if self.target_readable:
            self._target_read = self._read(at, self._target_read, copies=True)
        copied = {f"us.{n}": c for n, c in counts.items() if n not in self.missing_copies}
        source: dict[str, Any] = {"topics": counts, "topics_read_at": at - 1.0}
        target: dict[str, Any] = {
            "topics": copied,
            "topics_read_at": at - 1.0,
            "groups_complete": True,
        }
        return Observation(
            at=at,
            plan=FlowPlan(pairs),
            source=ClusterView(**source | self.source),
            target=ClusterView(**target | self.target),
            internals=self._internals(),
            source_offsets=self._source_read,
            target_offsets=self._target_read,
            source_readable=self.source_readable,
            target_readable=self.target_readable,
            probes={p: log.probe for p, log in self.logs.items() if log.probe is not None},
            canary_events=events,
        )

    def _internals(self) -> InternalsView:
        syncs = {
            partition: log.sync for partition, log in self.logs.items() if log.sync is not None
        }

        def offset_map(partition: TopicPartition) -> OffsetMap | None:
            if partition not in syncs:
                return None
            runs = SyncRuns()
            runs.add(syncs[partition].upstream, syncs[partition].downstream)
            return runs

        committed = {partition: log.committed for partition, log in self.logs.items()}
        fields: dict[str, Any] = {
            "syncs": syncs,
            "offset_map": offset_map,
            "committed": {partition: at for partition, at in committed.items() if at is not None},
            "saved": SavedState.of(self.state),
        }
        return InternalsView(**fields | self.internals)

    def _read(self, at: float, before: OffsetsRead | None, *, copies: bool) -> OffsetsRead:
        ends, starts, stable = {}, {}, {}
        for (topic, number), log in self.logs.items():
            partition = TopicPartition(f"us.{topic}" if copies else topic, number)
            end, start = (log.target_end, log.target_start) if copies else (log.end, log.start)
            if copies and topic in self.missing_copies:
                continue
            if end is not None:
                ends[partition] = end
            if start is not None:
                starts[partition] = start
            if log.stable is not None and not copies:
                stable[partition] = log.stable
        return OffsetsRead(
            ends=ends,
            starts=starts,
            stable_ends=stable,
            requested_at=at - 0.2,
            answered_at=at - 0.1,
            previous_requested_at=None if before is None else before.requested_at,
            previous_answered_at=None if before is None else before.answered_at,
            starts_read_at=at,
        )
