"""Tracks a flow over time: turns observations into reports.

Before enough was read to track it, only the source side of its topics is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mm2slo_core.config.exporter_settings import CanaryCarrier, FlowSettings, PolicyKind
from mm2slo_core.indicators.canary_rules import CanaryRules
from mm2slo_core.indicators.flow_state import FlowStateName, PartitionProgress, StateReason
from mm2slo_core.indicators.replication_lag import SmoothedRate, catch_up_seconds
from mm2slo_core.indicators.sli_counters import SliCount, SliKey
from mm2slo_core.mm2_config.running_settings import (
    RunningConnectors,
    observed_flow,
    overridden_settings,
)
from mm2slo_core.state_record import RecoveryPoint
from mm2slo_core.topic_selection import SyncedSettings, TopicPair, TopicRole
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import HeartbeatSeen
from mm2slo_exporter.flow_observation import Observation, OffsetsRead
from mm2slo_exporter.state.canary_tracker import CanaryTracker, HeartbeatTracker
from mm2slo_exporter.state.failover_readiness import GroupJudge, restored_groups
from mm2slo_exporter.state.flow_judge import FlowStateJudge, LivenessEvidence, SliceIndicators
from mm2slo_exporter.state.flow_report import (
    FlowInfo,
    FlowReport,
    HeartbeatState,
    PartitionState,
    TaskState,
    TopicState,
)
from mm2slo_exporter.state.flow_topics import FlowTopics, UnreadPartitions
from mm2slo_exporter.state.group_lag import FlowGroupLags, largest_known, sum_known
from mm2slo_exporter.state.partition_reading import FlowRules

_LAG_RATE_HALF_LIFE = 30.0

_CLOCK_TOLERANCE = 5.0
"""After a smaller step of the clock, stalls and slices are late by as much."""


class FlowTracker:
    """Turns each observation of a flow into a report."""

    def __init__(
        self,
        flow: FlowSettings,
        *,
        carrier: CanaryCarrier,
        shared_target: bool,
        started_at: float,
        group_lag: bool = True,
        awaits_history: bool = False,
        previous: FlowTracker | None = None,
    ) -> None:
        """Continues from the state of *previous*, of the same flow before a reload.

        *awaits_history*: the timeline of earlier processes will be read.
        """
        self.flow = flow
        """With the settings of the running connectors."""
        self._configured = flow
        self._running = RunningConnectors()
        self._carrier = carrier
        self._shared_target = shared_target
        self._awaits_history = awaits_history
        self._rules = self._rules_of(flow)
        self._settings = SyncedSettings(flow.config_properties_exclude)
        self.topics: FlowTopics = FlowTopics()
        self._groups = GroupJudge(flow)
        self._group_lags = FlowGroupLags(flow.flow) if group_lag else None
        self._recovery_point: RecoveryPoint | None = None
        self._unread = UnreadPartitions()
        self._heartbeats = HeartbeatTracker(flow)
        self._slices: SliceIndicators = SliceIndicators(
            flow,
            by_heartbeats=carrier is CanaryCarrier.OFF,
            started_at=started_at,
            previous=previous._slices if previous else None,
        )
        self._judge = FlowStateJudge(flow)
        self._at = started_at
        self._lag_rate = SmoothedRate(_LAG_RATE_HALF_LIFE)
        self.canaries: CanaryTracker | None = None
        if carrier is not CanaryCarrier.OFF:
            own_topic = carrier is CanaryCarrier.TOPIC
            rules = CanaryRules(
                deadline=flow.canary.deadline,
                interval=flow.canary.interval,
                latency_tiers=flow.canary.latency_tiers,
                own_topic=own_topic,
                # MirrorMaker 2's heartbeats topic is compacted.
                confirm_losses=not own_topic,
            )
            self.canaries = CanaryTracker(
                rules, started_at, previous.canaries if previous else None
            )
        if previous is not None:
            self._continue(previous)

    def _continue(self, previous: FlowTracker) -> None:
        """Take over what does not depend on the configuration."""
        self.topics = FlowTopics(previous.topics)
        self._at = previous._at
        self._heartbeats = previous._heartbeats
        self._heartbeats.flow = self.flow
        before = previous.flow
        is_same = (before.policy, before.engine) == (self.flow.policy, self.flow.engine)
        if not is_same:
            self.topics.restart()  # of other copies
            return
        self._recovery_point, self._unread = previous._recovery_point, previous._unread
        self._lag_rate = previous._lag_rate
        self._judge = previous._judge
        self._judge.flow = self.flow
        if self._group_lags is not None and previous._group_lags is not None:
            self._group_lags = previous._group_lags

    def first_report(self, started_at: float) -> FlowReport:
        """The report before the first observation."""
        return FlowReport(
            flow=self.flow.flow,
            info=self.info,
            at=started_at,
            state=FlowStateName.UNKNOWN,
            state_reason=StateReason.NOT_READY,
            ready=False,
            waiting_for=("the first round",),
            source_readable=False,
            target_readable=False,
            slis=self.slis(),
        )

    def update(self, seen: Observation) -> FlowReport:
        """Process one observation and report the flow's state."""
        step, self._at = seen.at - self._at, seen.at
        clock_set_back = step < -_CLOCK_TOLERANCE
        if clock_set_back:
            self._restart_times(seen.at, step)
        if seen.internals.connectors != self._running:
            self._running = seen.internals.connectors
            self._use(observed_flow(self._configured, self._running))
        waiting_for = seen.unread
        ready = not waiting_for
        # Internal topics must be read to their end: positions would jump otherwise.
        topics: tuple[TopicState, ...] = ()
        if ready:
            topics = self.topics.judge(seen, self._rules, self._settings, self._judge.replicated_at)
        else:
            self.topics.judge_all_next()
            self._groups.forget()
        data = [topic for topic in topics if topic.pair.role is TopicRole.DATA]
        wanted = [t for t in topics if t.pair.role in {TopicRole.DATA, TopicRole.UNSELECTED}]
        for event in seen.canary_events:
            if isinstance(event, HeartbeatSeen):
                self._heartbeats.observe(event)
        if clock_set_back:  # maybe between two of the events
            self._heartbeats.shift(step)
        heartbeats = self._heartbeats.state(seen.at)
        if self.canaries is not None:
            self.canaries.observe(seen, self._carrier_pair(seen), clock_set_back=clock_set_back)
        if ready:
            self._slices.observe(seen, data, heartbeats)
        unchanged = self.topics.unchanged
        changed = [topic for topic in data if topic.pair.source not in unchanged]
        totals = self.topics.totals.observe(changed, seen.lost_records)
        liveness = self._liveness(seen.at, heartbeats)
        # One partition is enough for all topics at rest: none has a lag.
        resting = next((topic.partitions[:1] for topic in data if topic.at_rest), ())
        partitions = [*resting, *(p for t in data if not t.at_rest for p in t.partitions)]
        records = [p.lag_records for p in partitions]
        lag = sum_known(records) if ready else None
        lag_seconds = largest_known([p.lag_seconds for p in partitions]) if ready else None
        if ready and seen.source_readable and seen.source_offsets is not None:
            if None in records:
                partitions = self._add_unread(seen.at, seen.source_offsets, data, partitions)
            else:
                read_at = seen.source_offsets.requested_at
                self._unread.all_known(data, read_at)
                self._recovery_point = RecoveryPoint(lag, lag_seconds, read_at)
        state = self._judge.judge(seen, data, partitions, totals, liveness)
        groups = self._groups.judge(seen, wanted) if ready else restored_groups(seen)
        restored_point = None if seen.source_readable else seen.internals.saved.recovery_point
        return FlowReport(
            flow=self.flow.flow,
            info=self.info,
            overridden=overridden_settings(self._configured, self.flow),
            shared_cluster=(
                seen.source.cluster_id if seen.source.cluster_id == seen.target.cluster_id else None
            ),
            at=seen.at,
            state=state.name,
            state_reason=state.reason,
            ready=ready,
            waiting_for=waiting_for,
            source_readable=seen.source_readable,
            target_readable=seen.target_readable,
            topics=topics if ready else source_topics(seen),
            totals=totals,
            groups=groups,
            unjudged_groups=self._groups.unjudged(seen, groups),
            group_lags=self._group_lags.observe(seen) if ready and self._group_lags else (),
            tasks=tuple(
                TaskState(connector, task, name)
                for (connector, task), name in sorted(
                    seen.internals.states.items(), key=lambda entry: (entry[0][0], entry[0][1] or 0)
                )
            ),
            heartbeats=heartbeats,
            heartbeat_latency=self._heartbeats.latency() if heartbeats.present else None,
            canary=None if self.canaries is None else self.canaries.ledger.totals,
            canary_pending=None if self.canaries is None else self.canaries.ledger.pending,
            canary_latency=None if self.canaries is None else self.canaries.latencies.read(),
            canary_arrived_at=(
                None if self.canaries is None else self.canaries.ledger.last_arrival_at
            ),
            slis=self.slis(),
            lag_records=lag,
            lag_seconds=lag_seconds,
            recovery_point=self._recovery_point if ready else restored_point,
            catch_up_seconds=self._catch_up(seen.at, lag),
            stalled=tuple(
                TopicPartition(topic.pair.source, partition.partition)
                for topic in data
                if not topic.at_rest
                for partition in topic.partitions
                if partition.progress is PartitionProgress.STALLED
            ),
        )

    def _restart_times(self, at: float, step: float) -> None:
        """Continue as after a start: the clock was set back, and stored times are in the future.

        Stalls would not be found, slices not be counted, and evidence not age until it reaches them
        again. Counters continue.
        """
        self.topics.restart()
        self._unread = UnreadPartitions()
        self._groups.forget()
        if self._group_lags is not None:
            self._group_lags = FlowGroupLags(self.flow.flow)
        if (point := self._recovery_point) is not None:
            self._recovery_point = point._replace(read_at=point.read_at + step)
        self._judge = FlowStateJudge(self.flow)
        self._lag_rate = SmoothedRate(_LAG_RATE_HALF_LIFE)
        by_heartbeats = self._carrier is CanaryCarrier.OFF
        self._slices = SliceIndicators(
            self.flow, by_heartbeats=by_heartbeats, started_at=at, previous=self._slices
        )

    def end_history(self) -> None:
        """Take lag in seconds from timestamps of records that the timeline does not show."""
        if self._awaits_history:
            self._awaits_history = False
            self._rules = self._rules_of(self.flow)

    def _rules_of(self, flow: FlowSettings) -> FlowRules:
        return FlowRules.of(
            flow, shared_target=self._shared_target, awaits_history=self._awaits_history
        )

    def _use(self, flow: FlowSettings) -> None:
        """Continue with the settings of the running connectors."""
        self.flow = self._judge.flow = self._heartbeats.flow = flow
        self._rules = self._rules_of(flow)
        self._groups.use(flow)
        self._slices.use(flow)
        self.topics.judge_all_next()
        self._groups.forget()

    @property
    def info(self) -> FlowInfo:
        """The flow's configuration, as label values."""
        policy = self.flow.policy
        return FlowInfo(
            policy=policy.kind.value,
            separator=policy.separator if policy.kind is PolicyKind.DEFAULT else "",
            engine=self.flow.engine.value,
            canary=self._carrier.value,
            heartbeats_disabled=not self.flow.emit_heartbeats,
        )

    def slis(self) -> Mapping[SliKey, SliCount]:
        """All SLI counters of the flow; each exists from the start, at 0."""
        by_canary = {} if self.canaries is None else self.canaries.ledger.counters
        return {**by_canary, **self._slices.counts()}

    def _add_unread(
        self,
        at: float,
        read: OffsetsRead,
        topics: Sequence[TopicState],
        partitions: list[PartitionState],
    ) -> list[PartitionState]:
        """Update the recovery point; *partitions* and the last known states of unread ones."""
        unread = self._unread.observe(topics, read.requested_at)
        states = [each.at(at, self._judge.replicated_at) for each in unread]
        known = [p for p in partitions if p.lag_records is not None] + states
        records = sum(p.lag_records or 0 for p in known)
        # Those that were never known are omitted from a sum, but none is no evidence for 0.
        if records or len(known) == len(partitions):
            self._recovery_point = RecoveryPoint(
                records,
                largest_known([p.lag_seconds for p in known]),
                min([read.requested_at, *(each.read_at for each in unread)]),
            )
        return partitions + states

    def _liveness(self, at: float, heartbeats: HeartbeatState) -> LivenessEvidence:
        if self.canaries is None:
            return LivenessEvidence(None, None, heartbeats)
        ledger = self.canaries.ledger
        return LivenessEvidence(ledger.silence(at), ledger.last_arrival_at, heartbeats)

    def _carrier_pair(self, seen: Observation) -> TopicPair | None:
        """The replicated topic that carries the canaries, if it exists."""
        role = TopicRole.CANARY if self._carrier is CanaryCarrier.TOPIC else TopicRole.HEARTBEATS
        for pair in seen.plan.pairs:
            if pair.role is role and (role is TopicRole.CANARY or pair.source == "heartbeats"):
                return pair
        return None

    def _catch_up(self, at: float, lag: int | None) -> float | None:
        if lag is None:
            return None
        self._lag_rate.add(at, lag)
        return catch_up_seconds(lag, self._lag_rate.per_second)


def source_topics(seen: Observation) -> tuple[TopicState, ...]:
    """Topics with offsets of the source alone; none while it is unreadable. Counts nothing."""
    read = seen.source_offsets
    if read is None or not seen.source_readable:
        return ()
    return tuple(
        _topic(pair, seen.source.topics.get(pair.source), read) for pair in seen.plan.pairs
    )


def _topic(pair: TopicPair, count: int | None, read: OffsetsRead) -> TopicState:
    return TopicState(
        pair=pair,
        partitions=tuple(
            _partition(TopicPartition(pair.source, number), read) for number in range(count or 0)
        ),
        source_partition_count=count,
    )


def _partition(partition: TopicPartition, read: OffsetsRead) -> PartitionState:
    return PartitionState(
        partition=partition.partition,
        source_start=read.starts.get(partition),
        source_end=read.ends.get(partition),
    )
