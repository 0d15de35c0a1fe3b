"""Runs one flow: its readers, its internal topics, its state, its timeline, its probes.

Probed are the positions with lag that do not advance.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from mm2slo_core.config.exporter_settings import (
    CanaryCarrier,
    ExporterSettings,
    FlowSettings,
    Isolation,
    SettingsSource,
)
from mm2slo_core.indicators.replication_lag import LagOrigin
from mm2slo_core.mm2_config.running_settings import SettingDifference
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.canary_messages import (
    CanaryEvent,
    EventBuffer,
    LedgerState,
    Malformed,
    StageFailed,
    StageSucceeded,
)
from mm2slo_exporter.collection_health import CollectionHealth, CollectionStage
from mm2slo_exporter.cutover.cutover_reader import CutoverReader
from mm2slo_exporter.flow_observation import (
    ClusterView,
    InternalsView,
    Observation,
    ProbeSpan,
    SavedState,
    TailProbe,
)
from mm2slo_exporter.flow_plan import FlowPolicies
from mm2slo_exporter.readers.flow_reader import Ends, FlowReader, SideReader
from mm2slo_exporter.readers.internal_topics_reader import InternalTopicsReader, Subscription
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_exporter.readers.probe_reader import ProbeReader
from mm2slo_exporter.service.cluster_handles import ClusterHandle, FlowClusters
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.state.flow_tracker import FlowTracker
from mm2slo_exporter.supervised_thread import run_in_parallel
from mm2slo_exporter.timeline.arrival_poller import FlowArrivals
from mm2slo_exporter.timeline.flow_writer import FlowWriter
from mm2slo_exporter.timeline.timeline_history import TimelineHistory

logger = logging.getLogger(__name__)


class FlowRunner:
    """Reads one flow in the background; `evaluate` turns observations into reports."""

    def __init__(
        self,
        policies: FlowPolicies,
        flow_clusters: FlowClusters,
        exporter: ExporterSettings,
        health: CollectionHealth,
        deliver: Callable[[FlowRunner, Observation], bool],
        *,
        carrier: CanaryCarrier,
        shared_target: bool,
        previous: FlowRunner | None = None,
    ) -> None:
        """Continues from the state of *previous*, the stopped runner before a reload."""
        self.policies = policies
        self.flow: FlowSettings = policies.flow
        self._flow_clusters = flow_clusters
        self._exporter = exporter
        self._health = health
        self._events = EventBuffer()
        started_at = time.time()
        self.tracker: FlowTracker = FlowTracker(
            self.flow,
            carrier=carrier,
            shared_target=shared_target,
            started_at=started_at,
            group_lag=exporter.group_lag,
            awaits_history=exporter.timeline.enabled and previous is None,
            previous=previous.tracker if previous else None,
        )
        self.report = self.tracker.first_report(started_at)
        source, target = flow_clusters.source, flow_clusters.target
        self._source_offsets: SideReader = self._side(source, source.reader.movement.observe)
        target_offsets = self._side(target, target.reader.movement.observe_copies)
        self._internals = FlowInternals(
            policies, flow_clusters, exporter.state.topic, health, shared_target=shared_target
        )
        self._probes = ProbeReader(
            self.flow.label,
            flow_clusters.source.client,
            self.flow.isolation.value,
            health,
            every=exporter.poll_interval,
        )
        self._reader = FlowReader(
            self.flow.label,
            self,
            lambda source, internals: policies.plan(source.topics, internals.connectors),
            lambda observation: deliver(self, observation),
            source=self._source_offsets,
            target=target_offsets,
            every=exporter.poll_interval,
            on_failure=health.record_loop_failure,
        )
        self._read_as(self.flow.isolation)
        self.cutover: CutoverReader = CutoverReader(
            self.flow.flow,
            source.client,
            target.client,
            health.record_loop_failure,
            isolation=lambda: self.tracker.flow.isolation.value,
        )
        self._history: TimelineHistory | None = None
        self._history_since: float | None = None
        if exporter.timeline.enabled and previous is None:
            self._history_since = started_at
            self._history = TimelineHistory(
                self.flow.flow,
                flow_clusters.target.client,
                exporter.timeline.topic,
                health,
                until=started_at,
            )
        elif previous is not None:
            self._history_since = previous._history_since
        self._arrivals = FlowArrivals(self.flow.flow)
        self._arrival_poller = flow_clusters.target.arrivals
        self._writer: FlowWriter | None = None
        if flow_clusters.target.writer is not None:
            self._writer = FlowWriter(
                self.flow.flow,
                flow_clusters.target.writer,
                health,
                has_timeline=exporter.timeline.enabled,
                counted=previous.report.timeline if previous else None,
            )

    def start(self) -> None:
        self._internals.start()
        self._probes.start()
        self._reader.start()
        if self._arrival_poller is not None:
            self._arrival_poller.add(self._arrivals)

    def stop(self) -> None:
        stops = [self._probes.stop, self._reader.stop, self._internals.stop, self.cutover.stop]
        if self._arrival_poller is not None:
            self._arrival_poller.remove(self._arrivals)
        if self._history is not None:
            stops.append(self._history.stop)
        run_in_parallel(stops)

    def read_soon(self) -> None:
        self._reader.read_soon()

    def evaluate(self, observation: Observation) -> FlowReport:
        """Turn one observation into a report; requests probes and writes records."""
        if self.tracker.canaries is not None:
            for sequence, present in self._probes.take_lookup_results():
                self.tracker.canaries.ledger.looked_up(sequence, present=present)
        report = self.tracker.update(observation)
        if report.shared_cluster != self.report.shared_cluster is None:
            logger.error(
                "%s: source and target are one cluster, with the id %s; MirrorMaker 2 copies its "
                "copies without end. Use one alias for each cluster",
                self.flow.label,
                report.shared_cluster,
                extra={"flow": self.flow.label},
            )
        if report.overridden and report.overridden != self.report.overridden:
            self._log_overridden(report.overridden)
        recreations = report.totals.source_recreations_total
        if recreations > self.report.totals.source_recreations_total:
            self._log_recreated(report)
        self._read_as(self.tracker.flow.isolation)
        self._probes.request(
            wanted_probes(report, self.tracker.flow.isolation),
            self._lookups(),
            probes_in_use(report, self._probes.answers),
        )
        self._add_history(report)
        report = replace(report, history_since=self._history_since)
        if self._writer is not None:
            self._writer.write(observation, report, self.tracker.topics)
            report = replace(report, timeline=self._writer.timeline_state)
        if self._arrival_poller is not None:
            self._arrivals.observe(observation)
            report = replace(report, arrival_bracket=self._arrival_poller.bracket)
        self.cutover.watch.observe(observation, report, self.tracker.flow)
        self.report = report
        return report

    def take(self, event: CanaryEvent) -> None:
        if isinstance(event, StageFailed):
            self._health.record_failure(
                event.cluster, CollectionStage(event.stage), event.kind, event.message
            )
            self._events.put(event)
        elif isinstance(event, Malformed):
            self._health.record_malformed(event.cluster, event.kind, event.reason)
        else:
            if isinstance(event, StageSucceeded):
                self._health.record_success(event.cluster, CollectionStage(event.stage), event.at)
            self._events.put(event)

    def canary_process_started(self) -> None:
        if self.tracker.canaries is not None:
            self.tracker.canaries.process_started(time.time())

    @property
    def ledger_state(self) -> LedgerState:
        canaries = self.tracker.canaries
        return LedgerState() if canaries is None else canaries.ledger_state

    # The methods of FlowSources.

    def clusters(self) -> tuple[ClusterView, ClusterView]:
        return self._flow_clusters.source.reader.view, self._flow_clusters.target.reader.view

    def internals(self) -> InternalsView:
        return self._internals.view()

    def probes(self) -> Mapping[TopicPartition, TailProbe]:
        return self._probes.answers

    def canary_events(self) -> tuple[CanaryEvent, ...]:
        return tuple(self._events.take())

    def _log_overridden(self, settings: tuple[SettingDifference, ...]) -> None:
        logger.warning(
            "%s: MirrorMaker 2 runs with %s; using these values. Change the configuration, or set "
            "`settings: configured` for the flow to keep it",
            self.flow.label,
            ", ".join(f"{name} {used} (configured: {own})" for name, own, used in settings),
            extra={"flow": self.flow.label},
        )

    def _log_recreated(self, report: FlowReport) -> None:
        """Name the likely cause of a source topic that was deleted and is back with one partition.

        MirrorMaker 2's consumer asks for the metadata of a topic until its connector knows that it
        was deleted, and brokers with `auto.create.topics.enable` create it then.
        """
        known = {each.pair.source: each.source_recreations_total for each in self.report.topics}
        for topic in report.topics:
            is_new = topic.source_recreations_total > known.get(topic.pair.source, 0)
            if is_new and topic.source_partition_count == 1:
                logger.warning(
                    "%s: topic %s was deleted on %s and is back with one partition; if no user "
                    "created it, MirrorMaker 2's consumer did: set "
                    "consumer.allow.auto.create.topics = false (runbook MM2TopicRecreated)",
                    self.flow.label,
                    topic.pair.source,
                    self.flow.flow.source,
                    extra={"flow": self.flow.label},
                )

    def _read_as(self, isolation: Isolation) -> None:
        """Read the source as MirrorMaker 2 does."""
        self._source_offsets.stable_ends = isolation is Isolation.READ_COMMITTED
        self._probes.isolation = isolation.value

    def _side(self, cluster: ClusterHandle, observe: Callable[[Ends, Ends], None]) -> SideReader:
        return SideReader(
            cluster.client,
            self._health,
            starts_every=self._exporter.start_offsets_interval,
            observe_ends=observe,
        )

    def _lookups(self) -> tuple[tuple[int, TopicPartition, int], ...]:
        """Canaries to look up on a compacted source before they count as lost."""
        if self.tracker.canaries is None:
            return ()
        carrier = self.policies.internal.heartbeats.topic
        return tuple(
            (suspect.sequence, TopicPartition(carrier, suspect.partition), suspect.source_offset)
            for suspect in self.tracker.canaries.ledger.suspects()[:20]
        )

    def _add_history(self, report: FlowReport) -> None:
        """Add what was read of the timeline; lag in seconds follows from it in the next round."""
        if self._history is None or not report.ready:
            return
        if not self._history.is_started:
            self._history.start({each.pair.source for each in report.topics if not each.at_rest})
        if self._history.is_ended:
            self.tracker.end_history()
        chunk = self._history.take()
        if chunk is not None:
            self.tracker.topics.add_history(chunk.records)
            self._history_since = chunk.oldest or self._history_since
            self._history.proceed(self.tracker.topics.lacking_arrivals(report.topics))


class _Followed(NamedTuple):
    title: str
    reader: InternalTopicsReader
    subscription: Subscription


class FlowInternals:
    """Follows the topics of a flow; none for engines other than MirrorMaker 2."""

    def __init__(
        self,
        policies: FlowPolicies,
        clusters: FlowClusters,
        state_topic: str,
        health: CollectionHealth,
        *,
        shared_target: bool,
    ) -> None:
        flow, connect, internal = policies.flow, policies.flow.connect, policies.internal
        target = clusters.target
        self._store = InternalsStore(
            flow_slug=flow.flow.slug,
            source_alias=flow.flow.source,
            source_connector=connect.source_connector,
            connectors=frozenset(
                {
                    connect.source_connector,
                    connect.checkpoint_connector,
                    connect.heartbeat_connector,
                }
            ),
            heartbeat_connector=policies.heartbeat_connector,
            malformed=lambda kind, reason: health.record_malformed(
                target.client.alias, kind.value, reason
            ),
            dense=not (shared_target or flow.exactly_once),
            detects_transactions=flow.settings is SettingsSource.OBSERVED,
            forgetful_connector=None if flow.keeps_offset_syncs else connect.checkpoint_connector,
        )
        self._state = self._followed(InternalTopic.STATE, target, state_topic)
        self._first: list[_Followed] = []
        self._later: list[_Followed] = []
        """What is followed when the status topic was read: MirrorMaker 2 before Kafka 3.7.1."""
        if not flow.by_mirrormaker:
            return
        # On the source by default; `offset-syncs.topic.location` moves it (KIP-716).
        on_source = internal.offset_syncs.cluster == flow.flow.source
        syncs = self._followed(
            InternalTopic.OFFSET_SYNCS,
            clusters.source if on_source else target,
            internal.offset_syncs.topic,
        )
        (self._first if flow.keeps_offset_syncs else self._later).append(syncs)
        offsets = connect.offsets_topic or internal.connect_offsets.topic
        status = connect.status_topic or internal.connect_status.topic
        configs = connect.configs_topic or internal.connect_configs.topic
        self._first += [
            self._state,
            self._followed(InternalTopic.CHECKPOINTS, target, internal.checkpoints.topic),
            self._followed(InternalTopic.COMMITTED_OFFSETS, target, offsets),
            self._followed(InternalTopic.STATUS, target, status),
            self._followed(InternalTopic.CONNECTOR_CONFIGS, target, configs),
            self._followed(
                InternalTopic.HEARTBEAT_CONFIGS, clusters.source, policies.heartbeat_configs
            ),
        ]

    def start(self) -> None:
        for each in self._first:
            each.reader.follow(each.subscription)

    def stop(self) -> None:
        for each in (*self._first, *self._later):
            each.reader.unfollow(each.subscription)

    def view(self) -> InternalsView:
        """The current state, and the topics that have not been read to their end yet."""
        state = self._state.subscription
        # A denied state topic leaves losses pending; a new one has no earlier state.
        optional = state if state.is_denied or state.was_absent else None
        view = self._store.view(
            tuple(
                each.title
                for each in (*self._first, *self._later)
                if not (each.subscription.is_optional or each.subscription.is_complete)
                and each.subscription is not optional
            )
        )
        return view if state.is_complete else replace(view, saved=SavedState())

    def _followed(self, kind: InternalTopic, cluster: ClusterHandle, topic: str) -> _Followed:
        is_of_opposite = kind is InternalTopic.HEARTBEAT_CONFIGS
        return _Followed(
            f"{topic} on {cluster.client.alias}",
            cluster.internals,
            Subscription(
                topic,
                CollectionStage.CONNECTOR_CONFIGS
                if is_of_opposite
                else CollectionStage(kind.value),
                apply=partial(self._store.apply, kind),
                read_up_to=partial(self._store.read_up_to, kind),
                clear=partial(self._store.clear, kind),
                on_complete=self._follow_later if kind is InternalTopic.STATUS else lambda: None,
                is_optional=is_of_opposite,
            ),
        )

    def _follow_later(self) -> None:
        for each in self._later:
            each.reader.follow(each.subscription)


SETTLED_SECONDS = 2.0
"""A position that advanced more recently than this is not probed."""


def wanted_probes(report: FlowReport, isolation: Isolation) -> Mapping[TopicPartition, ProbeSpan]:
    """Ranges [next offset, end) to probe, by source partition.

    Offsets without a record (markers, aborted batches, compaction) look like lag until a probe
    finds their range empty.
    """
    wanted = {}
    for topic in report.topics:
        for state in () if topic.at_rest else topic.partitions:
            if not state.lag_records or state.next_offset is None or state.source_end is None:
                continue
            is_settled = (
                state.progressed_at is None or report.at - state.progressed_at >= SETTLED_SECONDS
            )
            if not is_settled and state.lag_origin is not LagOrigin.ABSENT:
                continue
            end = state.source_end
            # A read_committed consumer gets nothing from the first open transaction on (KIP-98).
            if isolation is Isolation.READ_COMMITTED and state.open_transaction_records:
                end -= state.open_transaction_records
            start = max(state.next_offset, state.source_start or 0)
            if start < end:
                wanted[TopicPartition(topic.pair.source, state.partition)] = ProbeSpan(
                    start, end, state.log
                )
    return wanted


def probes_in_use(
    report: FlowReport, answers: Mapping[TopicPartition, TailProbe]
) -> frozenset[TopicPartition]:
    """Partitions whose lag depends on an answer: without it, their lag would reappear."""
    topics = {partition.topic for partition in answers}
    return frozenset(
        partition
        for topic in report.topics
        if topic.pair.source in topics
        for state in topic.partitions
        if (answer := answers.get(partition := TopicPartition(topic.pair.source, state.partition)))
        and state.next_offset is not None
        and answer.log == state.log
        and answer.next_offset <= max(state.next_offset, state.source_start or 0) <= answer.through
    )
