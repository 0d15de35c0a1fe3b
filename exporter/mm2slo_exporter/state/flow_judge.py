"""Judges a flow as a whole: its state, and its SLIs measured in time slices.

The state follows from partitions, canaries, heartbeats and tasks. The SLIs are data freshness,
checkpoint freshness and heartbeat availability.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mm2slo_core.config.exporter_settings import FlowSettings
from mm2slo_core.indicators.flow_state import FlowEvidence, FlowState, StateTimeouts, flow_state
from mm2slo_core.indicators.sli_counters import (
    CheckpointFreshness,
    FreshnessClass,
    Sli,
    SliceClock,
    SliCount,
    SliCounters,
    SliKey,
    data_freshness,
    heartbeat_availability,
)
from mm2slo_core.offset_translation import PositionQuality
from mm2slo_core.records.connect_records import ConnectState
from mm2slo_core.topic_filters import TopicFilter
from mm2slo_exporter.flow_observation import Observation
from mm2slo_exporter.state.failover_readiness import group_offsets
from mm2slo_exporter.state.flow_report import (
    FlowTotals,
    HeartbeatState,
    PartitionState,
    TopicState,
)

# A task is RESTARTING for moments. UNASSIGNED ones wait for a rebalance, by default up to five
# minutes after a worker is gone (scheduled.rebalance.max.delay.ms, KIP-415).
_ACTIVE_STATES = frozenset({ConnectState.RUNNING, ConnectState.RESTARTING})


@dataclass(frozen=True, slots=True)
class LivenessEvidence:
    """Canary and heartbeat evidence for the state of a flow."""

    canary_silence: float | None
    canary_arrived_at: float | None
    heartbeats: HeartbeatState


class FlowStateJudge:
    """Judges the state of a flow; tracks when its data last advanced."""

    def __init__(self, flow: FlowSettings) -> None:
        self.flow = flow
        self._totals: FlowTotals | None = None
        self._observed_since: float | None = None
        self._observed_at: float | None = None
        self._is_observable = False
        self._source_moved_at: float | None = None
        self._progressed_at: float | None = None
        self.replicated_at: float | None = None
        """When all tasks last ran and the flow replicated a record, canary or heartbeat."""

    def judge(
        self,
        seen: Observation,
        topics: Sequence[TopicState],
        partitions: Sequence[PartitionState],
        totals: FlowTotals,
        liveness: LivenessEvidence,
    ) -> FlowState:
        """Judge one round; *topics* are the data topics, empty before everything was read.

        *partitions* are theirs, of all topics at rest only one, to which the others are alike.
        """
        if topics:
            self._update_progress(seen.at, topics, totals)
        self._update_replicated_at(seen, liveness)
        ready = not seen.internals.waiting_for
        lagging = [partition for partition in partitions if partition.lag_records]
        timeouts = StateTimeouts(
            stall_after=self.flow.stall_after,
            canary_deadline=self.flow.canary.deadline,
            position_period=self._position_period(lagging),
        )
        evidence = FlowEvidence(
            ready=ready,
            source_readable=seen.source_readable,
            target_readable=seen.target_readable,
            backlog=self._backlog(topics, partitions, lagging),
            progress_age=_age(seen.at, self._progressed_at),
            stalled_for=self._stuck_for(seen.at, topics, lagging),
            source_moving=_recent(seen.at, self._source_moved_at, timeouts.backlog),
            canary_silence=liveness.canary_silence,
            canary_arrival_age=_age(seen.at, liveness.canary_arrived_at),
            heartbeat_age=liveness.heartbeats.age_seconds,
            observed_for=self._observed_for(seen, ready=ready),
            connector_running=connector_running(
                seen.internals.states, self.flow.connect.source_connector
            ),
        )
        return flow_state(evidence, timeouts)

    def _update_progress(self, at: float, topics: Sequence[TopicState], totals: FlowTotals) -> None:
        before, self._totals = self._totals or totals, totals
        if totals.source_records_total > before.source_records_total:
            self._source_moved_at = at
        if totals.replicated_records_total > before.replicated_records_total:
            self._progressed_at = at
        if not self.flow.by_mirrormaker:
            moved = (topic.target_moved_at for topic in topics)
            self._progressed_at = max((at for at in moved if at is not None), default=None)

    def _observed_for(self, seen: Observation, *, ready: bool) -> float:
        """Time for which the flow has been observable, without outages of `stall_after`.

        The time between two rounds is no outage, however long `poll_interval` is.
        """
        if not (ready and seen.source_readable and seen.target_readable):
            self._is_observable = False
        else:
            last = self._observed_at
            if last is None or (not self._is_observable and seen.at - last > self.flow.stall_after):
                self._observed_since = seen.at
            self._observed_at, self._is_observable = seen.at, True
        return 0.0 if self._observed_since is None else seen.at - self._observed_since

    def _update_replicated_at(self, seen: Observation, liveness: LivenessEvidence) -> None:
        connectors = (self.flow.connect.source_connector,)
        if all_tasks_running(seen.internals.states, connectors) is False:
            return
        times = (
            self.replicated_at,
            self._progressed_at,
            liveness.canary_arrived_at,
            liveness.heartbeats.arrived_at,
        )
        self.replicated_at = max((at for at in times if at is not None), default=None)

    def _position_period(self, lagging: Iterable[PartitionState]) -> float:
        """The offset flush interval, if a partition with lag has no live position."""
        live = PositionQuality.LIVE
        by_commit = any(partition.quality is not live for partition in lagging)
        return self.flow.offset_flush_interval if by_commit else 0.0

    def _backlog(
        self,
        topics: Sequence[TopicState],
        partitions: Sequence[PartitionState],
        lagging: Sequence[PartitionState],
    ) -> bool | None:
        """Whether a backlog exists; None when no partition's lag is known."""
        if not self.flow.by_mirrormaker:
            return bool(_stalled_topics(topics))
        is_known = not partitions or any(each.lag_records is not None for each in partitions)
        return bool(lagging) if is_known else None

    def _stuck_for(
        self, at: float, topics: Sequence[TopicState], lagging: Iterable[PartitionState]
    ) -> float | None:
        # The longest: quiet partitions that get their first records would hide it for long. Where
        # only some partitions are stuck, the flow has progressed.
        if not self.flow.by_mirrormaker:
            return _age(at, min(_stalled_topics(topics), default=None))
        starts = (each.backlog_since for each in lagging if each.backlog_since is not None)
        return _age(at, min(starts, default=None))


def connector_running(states: Mapping[tuple[str, int | None], str], connector: str) -> bool | None:
    """False when the connector or all of its tasks are not running; None without any state."""
    own = states.get((connector, None))
    tasks = [
        state for (name, task), state in states.items() if name == connector and task is not None
    ]
    if own is None and not tasks:
        return None
    if own is not None and own not in _ACTIVE_STATES:
        return False
    return not tasks or any(state in _ACTIVE_STATES for state in tasks)


def all_tasks_running(
    states: Mapping[tuple[str, int | None], str], connectors: Sequence[str]
) -> bool | None:
    """Whether all tasks of *connectors* are running; None when no task is known."""
    found = [state for (name, _task), state in states.items() if name in connectors]
    return all(state in _ACTIVE_STATES for state in found) if found else None


def _stalled_topics(topics: Sequence[TopicState]) -> list[float]:
    """Since when topics have grown without their copies, for engines without positions."""
    return [topic.backlog_since for topic in topics if topic.backlog_since is not None]


def _age(at: float, moment: float | None) -> float | None:
    return None if moment is None else at - moment


def _recent(at: float, moment: float | None, within: float) -> bool:
    return moment is not None and at - moment <= within


_AVAILABILITY = SliKey(Sli.AVAILABILITY)
_CHECKPOINTS = SliKey(Sli.CHECKPOINT_FRESHNESS)


class FreshnessClasses:
    """Assigns each topic its freshness class: the first that matches."""

    def __init__(self, flow: FlowSettings) -> None:
        self._classes = tuple(
            (FreshnessClass(each.name, each.threshold), TopicFilter(each.topics, ()))
            for each in flow.freshness
        )
        self._known: dict[str, FreshnessClass] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the classes; values of the label `tier`."""
        return tuple(each.name for each, _filter in self._classes)

    def lags(
        self, topics: Iterable[TopicState], *, known: bool = True
    ) -> Mapping[FreshnessClass, list[float | None]]:
        """Lag in seconds of each partition, by class; None where it is unknown.

        *known* False: the target is unreadable, so that lags are only upper bounds.
        """
        found: dict[FreshnessClass, list[float | None]] = {each: [] for each, _ in self._classes}
        before, self._known = self._known, {}
        for topic in topics:
            name = topic.pair.source
            self._known[name] = before.get(name) or self._of(name)
            lags = found[self._known[name]]
            if not known:
                lags += [None] * len(topic.partitions)
            elif topic.at_rest:
                lags += [topic.partitions[0].lag_seconds] * len(topic.partitions)
            else:
                lags += [each.lag_seconds for each in topic.partitions]
        return found

    def _of(self, topic: str) -> FreshnessClass:
        return next(each for each, names in self._classes if names.matches(topic))


class SliceIndicators:
    """Counts slices of one flow; none for engines other than MirrorMaker 2, without positions."""

    def __init__(
        self,
        flow: FlowSettings,
        *,
        by_heartbeats: bool,
        started_at: float,
        previous: SliceIndicators | None = None,
    ) -> None:
        """Continues the counts of *previous*, before a reload."""
        self._is_measured = flow.by_mirrormaker
        self._classes = FreshnessClasses(flow)
        self._clock = SliceClock(flow.slice, started_at)
        self._checkpoints = CheckpointFreshness(flow.checkpoint_interval, flow.offset_lag_max)
        self._by_heartbeats = by_heartbeats
        keys = [SliKey(Sli.DATA_FRESHNESS, name) for name in self._classes.names]
        keys.append(_CHECKPOINTS)
        if by_heartbeats:
            keys.append(_AVAILABILITY)
        counted = previous.counts() if previous else None
        self._counters = SliCounters(keys if self._is_measured else (), counted)

    def observe(
        self, seen: Observation, topics: Sequence[TopicState], heartbeats: HeartbeatState
    ) -> None:
        """Count the slices that ended since the last round."""
        slices = self._clock.due(seen.at)
        if not slices.measured or not self._is_measured:
            return
        lags = self._classes.lags(topics, known=seen.target_readable)
        self._counters.add_all(data_freshness(slices, lags))
        copies = {topic.pair.source: topic.pair.target for topic in topics}
        groups, syncs = group_offsets(seen), seen.internals.syncs
        counted = self._checkpoints.count(seen.at, slices, copies, groups, syncs)
        self._counters.add(_CHECKPOINTS, counted)
        if self._by_heartbeats:
            source_unreachable_for = 0.0
            if not seen.source_readable and seen.source_offsets is not None:
                source_unreachable_for = seen.at - seen.source_offsets.answered_at
            self._counters.add(
                _AVAILABILITY,
                heartbeat_availability(
                    slices,
                    heartbeats.age_seconds,
                    target_readable=seen.target_readable,
                    source_unreachable_for=source_unreachable_for,
                ),
            )

    def use(self, flow: FlowSettings) -> None:
        """Continue with the settings of the running connectors."""
        self._checkpoints.checkpoint_interval = flow.checkpoint_interval
        self._checkpoints.offset_lag_max = flow.offset_lag_max

    def counts(self) -> Mapping[SliKey, SliCount]:
        """Good, total and unknown slices."""
        return self._counters.snapshot()
