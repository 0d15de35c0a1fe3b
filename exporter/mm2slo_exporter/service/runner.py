"""Everything that serves one flow: its readers, its state, its part of the timeline."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_core.config.flow import Isolation
from mm2slo_core.topology import TopicPartition
from mm2slo_exporter.canary.events import Malformed, Trouble, Working
from mm2slo_exporter.canary.hints import Hint
from mm2slo_exporter.health import Health, Stage
from mm2slo_exporter.readers.flow import FlowReader, Sides
from mm2slo_exporter.readers.internals import InternalsReader, TopicPlace
from mm2slo_exporter.readers.internals_store import InternalsStore, InternalTopic
from mm2slo_exporter.readers.offsets import SideReader
from mm2slo_exporter.readers.probes import ProbeReader
from mm2slo_exporter.service.probing import probes_in_use, wanted_probes
from mm2slo_exporter.state.flow import FlowTracker
from mm2slo_exporter.threads import all_at_once
from mm2slo_exporter.timeline.restore import read_back
from mm2slo_exporter.timeline.writer import TimelineWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_core.config.canary import CanaryCarrier
    from mm2slo_core.config.exporter import ExporterConfig
    from mm2slo_core.config.flow import FlowConfig
    from mm2slo_exporter.canary.events import Event
    from mm2slo_exporter.observation import ClusterView, InternalsView, Observation, TailProbe
    from mm2slo_exporter.plan import FlowPlan
    from mm2slo_exporter.service.clusters import ClusterHandle
    from mm2slo_exporter.service.policies import FlowRulebook
    from mm2slo_exporter.state.model import FlowReport


@dataclass(frozen=True, slots=True)
class Ends:
    """The clusters at both ends of a flow."""

    source: ClusterHandle
    target: ClusterHandle


class FlowRunner:
    """Reads one flow in the background and evaluates what was read when asked to."""

    def __init__(
        self,
        rulebook: FlowRulebook,
        ends: Ends,
        exporter: ExporterConfig,
        health: Health,
        deliver: Callable[[FlowRunner, Observation], None],
        *,
        carrier: CanaryCarrier,
        shared_target: bool,
    ) -> None:
        self.rulebook = rulebook
        self.flow: FlowConfig = rulebook.flow
        self.report: FlowReport | None = None
        self._ends = ends
        self._exporter = exporter
        self._health = health
        self._deliver = deliver
        self._events: list[Event] = []
        self._events_lock = threading.Lock()
        self._stopping = threading.Event()
        self.tracker = FlowTracker(
            self.flow, carrier=carrier, shared_target=shared_target, started_at=time.time()
        )
        reads_committed = self.flow.isolation is Isolation.READ_COMMITTED
        self._internals = self._internals_reader(dense=not shared_target)
        self._probes = ProbeReader(
            self.flow.label,
            ends.source.client,
            self.flow.isolation.value,
            health,
            every=exporter.poll_interval,
        )
        self._reader = FlowReader(
            self.flow.label,
            Sides(
                source=self._side(ends.source, stable_ends=reads_committed),
                target=self._side(ends.target),
            ),
            self,
            self._plan,
            lambda seen: deliver(self, seen),
            every=exporter.poll_interval,
            before=self._restore,
        )
        self._timeline: TimelineWriter | None = None
        if exporter.writes_timeline:
            self._timeline = TimelineWriter(
                self.flow.flow,
                ends.target.client,
                ends.target.config.librdkafka_properties(),
                exporter.timeline,
                health,
            )

    def start(self) -> None:
        """Begin to read; returns at once."""
        self._internals.start()
        self._probes.start()
        self._reader.start()
        if self._timeline is not None:
            self._timeline.start()

    def stop(self) -> None:
        """End all threads of this flow."""
        self._stopping.set()
        stops = [self._probes.stop, self._reader.stop, self._internals.stop]
        if self._timeline is not None:
            stops.append(self._timeline.stop)
        all_at_once(stops)

    def evaluate(self, seen: Observation) -> FlowReport:
        """Turn one round into a report; asks for probes and writes the timeline as needed."""
        if self.tracker.canaries is not None:
            for sequence, present in self._probes.take_looked_up():
                self.tracker.canaries.ledger.looked_up(sequence, present=present)
        report = self.tracker.update(seen)
        self._probes.request(
            wanted_probes(report, self.flow.isolation),
            self._lookups(),
            probes_in_use(report, self._probes.answers),
        )
        if self._timeline is not None:
            self._timeline.write(seen, self.tracker.losses)
            report = report.with_timeline(self._timeline.state)
        self.report = report
        return report

    def take(self, event: Event) -> None:
        """Take an event of the canary process."""
        if isinstance(event, Trouble):
            self._health.failed(event.cluster, Stage(event.stage), event.kind, event.message)
            with self._events_lock:
                self._events.append(event)
        elif isinstance(event, Malformed):
            self._health.malformed(event.cluster, event.kind, event.reason)
        else:
            if isinstance(event, Working):
                self._health.succeeded(event.cluster, Stage(event.stage), event.at)
            with self._events_lock:
                self._events.append(event)

    def canary_process_started(self) -> None:
        """Note that the canary process starts anew."""
        if self.tracker.canaries is not None:
            self.tracker.canaries.process_started(time.time())

    @property
    def hint(self) -> Hint:
        """What the next canaries should carry."""
        if self.tracker.canaries is None:
            return Hint()
        ledger = self.tracker.canaries.ledger
        return Hint(ledger.floor, ledger.newest_arrived)

    # FlowSources: what other threads have read, as it is now.

    def clusters(self) -> tuple[ClusterView, ClusterView]:
        """Views of source and target."""
        return self._ends.source.reader.view, self._ends.target.reader.view

    def internals(self) -> InternalsView:
        """What the internal topics say."""
        return self._internals.view()

    def probes(self) -> Mapping[TopicPartition, TailProbe]:
        """What was found at positions that did not move."""
        return self._probes.answers

    def canary_events(self) -> tuple[Event, ...]:
        """Events since the last call."""
        with self._events_lock:
            events, self._events = self._events, []
        return tuple(events)

    # Building

    def _side(self, cluster: ClusterHandle, *, stable_ends: bool = False) -> SideReader:
        return SideReader(
            cluster.client,
            self._health,
            starts_every=self._exporter.start_offsets_interval,
            stable_ends=stable_ends,
        )

    def _internals_reader(self, *, dense: bool) -> InternalsReader:
        connect = self.flow.connect
        target = self._ends.target.client.alias
        store = InternalsStore(
            source_alias=self.flow.flow.source,
            source_connector=connect.source_connector,
            connectors=frozenset(
                {
                    connect.source_connector,
                    connect.checkpoint_connector,
                    connect.heartbeat_connector,
                }
            ),
            malformed=lambda kind, reason: self._health.malformed(target, kind.value, reason),
            dense=dense and not self.flow.exactly_once,
        )
        places = self._places() if self.flow.by_mirrormaker else ()
        return InternalsReader(self.flow.label, places, store, self._health)

    def _places(self) -> tuple[TopicPlace, ...]:
        connect, internal = self.flow.connect, self.rulebook.internal
        clients = {
            self.flow.flow.source: self._ends.source.client,
            self.flow.flow.target: self._ends.target.client,
        }
        target = self._ends.target.client
        return (
            TopicPlace(
                InternalTopic.OFFSET_SYNCS,
                clients[internal.offset_syncs.cluster],
                internal.offset_syncs.topic,
            ),
            TopicPlace(InternalTopic.CHECKPOINTS, target, internal.checkpoints.topic),
            TopicPlace(
                InternalTopic.COMMITTED_OFFSETS,
                target,
                connect.offsets_topic or internal.connect_offsets.topic,
                reads_committed=self.flow.exactly_once,
            ),
            TopicPlace(
                InternalTopic.STATUS,
                target,
                connect.status_topic or internal.connect_status.topic,
            ),
            TopicPlace(
                InternalTopic.CONNECTOR_CONFIGS,
                target,
                connect.configs_topic or internal.connect_configs.topic,
            ),
        )

    def _plan(self, source: ClusterView) -> FlowPlan:
        return self.rulebook.plan(source.topics)

    def _lookups(self) -> tuple[tuple[int, TopicPartition, int], ...]:
        """Canaries to look for on a compacted source before they count as lost."""
        if self.tracker.canaries is None:
            return ()
        carrier = self.rulebook.internal.heartbeats.topic
        return tuple(
            (suspect.sequence, TopicPartition(carrier, suspect.partition), suspect.source_offset)
            for suspect in self.tracker.canaries.ledger.suspects()[:20]
        )

    def _restore(self) -> None:
        """Read back what an earlier process wrote; runs before the first round is delivered."""
        if self._exporter.timeline.enabled:
            target = self._ends.target.client
            self.tracker.remember(
                read_back(
                    target,
                    self._exporter.timeline.topic,
                    self.flow.flow,
                    self._stopping,
                    lambda reason: self._health.malformed(target.alias, "timeline", reason),
                )
            )
