"""Manages flows, their clusters and the canary process.

A cluster's reader reads the topics and groups of the flows that run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mm2slo_core.config.exporter_settings import (
    ClusterSettings,
    FlowSettings,
    PolicyKind,
    RootSettings,
)
from mm2slo_core.user_errors import UserError
from mm2slo_exporter.canary.canary_messages import CanaryEvent, CanarySpec, LedgerState
from mm2slo_exporter.canary.canary_supervisor import CanarySupervisor
from mm2slo_exporter.collection_health import CollectionHealth
from mm2slo_exporter.flow_observation import Observation
from mm2slo_exporter.flow_plan import FlowPolicies, canary_spec
from mm2slo_exporter.service.cluster_handles import ClusterHandles, FlowClusters
from mm2slo_exporter.service.flow_runner import FlowRunner
from mm2slo_exporter.state.flow_report import FlowReport
from mm2slo_exporter.supervised_thread import run_in_parallel
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.kafka_errors import KafkaOperationError

_STALE_ROUNDS = 3
"""A report older than this many polls no longer shows the current state."""

_STALE_SECONDS = 15.0
"""At least: a round takes 10 s if both clusters time out."""


class FlowManager:
    """Opens, replaces and closes flows. Changes need external locking; reads do not."""

    def __init__(
        self,
        config: RootSettings,
        selected: Sequence[str],
        health: CollectionHealth,
        deliver: Callable[[FlowRunner, Observation], bool],
        clock: Callable[[], float],
    ) -> None:
        """*selected* are flow labels, empty for all; *deliver* gets each observation."""
        self.config = config
        self._selected = tuple(selected)
        self._health = health
        self._deliver = deliver
        self._clock = clock
        self._runners: dict[str, FlowRunner] = {}
        self._watch_scope = FlowWatchScope(
            self.running, lambda alias: self._clusters.sharing([alias])
        )
        self._clusters = self._new_clusters(config)
        self._canary: CanarySupervisor | None = None
        self._canary_specs: list[CanarySpec] = []

    def running(self) -> list[FlowRunner]:
        return list(self._runners.values())

    def reports(self) -> list[FlowReport]:
        """The newest report of each flow; of unknown state if it is stale."""
        return [
            runner.report.not_evaluated() if self._is_stale(runner.report) else runner.report
            for runner in self.running()
        ]

    def stale_flows(self) -> tuple[str, ...]:
        """Labels of the flows that are no longer evaluated."""
        return tuple(
            runner.flow.label for runner in self.running() if self._is_stale(runner.report)
        )

    @property
    def stale_after(self) -> float:
        """Age in seconds from which a report is stale."""
        return max(_STALE_ROUNDS * self.config.exporter.poll_interval, _STALE_SECONDS)

    def _is_stale(self, report: FlowReport) -> bool:
        return self._clock() - report.at > self.stale_after

    def request_totals(self) -> Mapping[tuple[str, str], int]:
        return self._clusters.request_totals()

    def take_canary_events(self) -> None:
        """Pass each event of the canary process to its flow."""
        if self._canary is None:
            return
        for event in self._canary.events.take():
            self._take(event)

    def ledger_states(self) -> Mapping[str, LedgerState]:
        return {runner.flow.label: runner.ledger_state for runner in self.running()}

    def send_ledger_states(self, states: Mapping[str, LedgerState]) -> None:
        """Send the states that the next canaries carry to the canary process."""
        if self._canary is not None:
            if any(map(self._is_renamed, self._canary_specs)):
                specs = [canary_spec(self.config, runner.policies) for runner in self.running()]
                self._canary_specs = specs
                self._canary.change(specs)
            self._canary.send_ledger_states(states)

    def open(self) -> None:
        """Start the configured flows. Raises UserError for invalid client properties."""
        self._open(self.config)

    def apply(self, config: RootSettings) -> int:
        """Restart changed flows and start new ones; returns the number of started flows.

        Raises UserError for invalid client properties, before anything is changed.
        """
        wanted = {flow.label: flow for flow in config.select(self._selected)}
        reopened, everything = self._changed_clusters(config)
        used = {alias for flow in wanted.values() for alias in (flow.flow.source, flow.flow.target)}
        try:
            check_clients({alias: config.clusters[alias] for alias in reopened & used})
        except KafkaOperationError as problem:
            raise UserError(str(problem)) from None
        changed = [
            label
            for label, runner in self._runners.items()
            if everything
            or wanted.get(label) != runner.flow
            or {runner.flow.flow.source, runner.flow.flow.target} & reopened
        ]
        # Counters continue after a reload, so what was not scraped yet is not lost either.
        self.send_ledger_states(self.ledger_states())
        previous = {label: self._runners[label] for label in changed}
        self._close(changed)
        self._clusters.close([alias for alias in reopened if alias in self._clusters])
        if everything:
            self._clusters = self._new_clusters(config, self._clusters.request_totals())
        if self._clusters.retry_logins():
            self._stop_canary()  # its clients log in on their own
        opened = self._open(config, previous)
        self.config = config
        return opened

    def close(self) -> None:
        self._stop_canary()
        self._close(list(self._runners))
        self._clusters.close_all()

    def _changed_clusters(self, config: RootSettings) -> tuple[set[str], bool]:
        """Clusters with changed settings, and whether all clusters must be reopened."""
        old = self.config
        everything = config.exporter != old.exporter
        aliases = old.clusters.keys() | config.clusters.keys()
        changed = {
            alias
            for alias in aliases
            if everything or old.clusters.get(alias) != config.clusters.get(alias)
        }
        return set(self._clusters.sharing(changed)), everything

    def _new_clusters(
        self, config: RootSettings, requests: Mapping[tuple[str, str], int] | None = None
    ) -> ClusterHandles:
        return ClusterHandles(config.exporter, self._watch_scope, self._health, requests)

    def _open(self, config: RootSettings, previous: Mapping[str, FlowRunner] | None = None) -> int:
        flows = config.select(self._selected)
        new = [flow for flow in flows if flow.label not in self._runners]
        aliases = {alias for flow in flows for alias in (flow.flow.source, flow.flow.target)}
        wanted = {alias: config.clusters[alias] for alias in sorted(aliases)}
        try:
            self._clusters.open(wanted)
        except KafkaOperationError as problem:
            raise UserError(str(problem)) from None
        if new:
            # A restarted flow must not get events from the old process.
            self._stop_canary()
        for flow in new:
            stopped = (previous or {}).get(flow.label)
            self._runners[flow.label] = self._runner(config, flow, stopped)
        for flow in new:
            self._runners[flow.label].start()
        self._clusters.serve(runner.flow.flow for runner in self.running())
        specs = [canary_spec(config, runner.policies) for runner in self.running()]
        if self._canary is None or specs != self._canary_specs:
            self._restart_canary(specs)
        return len(new)

    def _close(self, labels: Iterable[str]) -> None:
        run_in_parallel([self._runners.pop(label).stop for label in list(labels)])

    def _runner(
        self, config: RootSettings, flow: FlowSettings, previous: FlowRunner | None
    ) -> FlowRunner:
        carrier = config.carrier(flow)
        opposite = next((each for each in config.flows if each.flow == flow.flow.reverse), None)
        return FlowRunner(
            FlowPolicies(flow, opposite),
            FlowClusters(self._clusters[flow.flow.source], self._clusters[flow.flow.target]),
            config.exporter,
            self._health,
            self._deliver,
            carrier=carrier,
            shared_target=shares_target(config, flow),
            previous=previous,
        )

    def _restart_canary(self, specs: list[CanarySpec]) -> None:
        self._stop_canary()
        self._canary_specs = specs
        self._canary = CanarySupervisor(
            specs, on_failure=self._health.record_loop_failure, on_start=self._canary_started
        )
        self._canary.start()

    def _is_renamed(self, spec: CanarySpec) -> bool:
        """Whether running connectors name the copy of the canaries' topic differently."""
        runner = self._runners.get(spec.flow)
        if runner is None:
            return False
        return (runner.policies.copy_name(spec.source_topic) or "") != spec.target_topic

    def _stop_canary(self) -> None:
        if self._canary is not None:
            self._canary.stop()
            self._canary = None

    def _canary_started(self) -> None:
        for runner in self.running():
            runner.canary_process_started()

    def _take(self, event: CanaryEvent) -> None:
        runner = self._runners.get(event.flow)
        if runner is not None:
            runner.take(event)


def shares_target(config: RootSettings, flow: FlowSettings) -> bool:
    """Whether another flow writes to the same topic names on the same target (identity fan-in)."""
    return flow.policy.kind is PolicyKind.IDENTITY and any(
        other is not flow
        and other.flow.target == flow.flow.target
        and other.policy.kind is PolicyKind.IDENTITY
        for other in config.flows
    )


def check_clients(clusters: Mapping[str, ClusterSettings]) -> None:
    """Raise KafkaOperationError for invalid client properties, without connecting."""
    for alias, config in clusters.items():
        ClusterClient(alias, config.librdkafka_properties()).close()


class FlowWatchScope:
    """The topics and groups of the flows that are running at the time of the call."""

    def __init__(
        self,
        runners: Callable[[], Iterable[FlowRunner]],
        sharing: Callable[[str], AbstractSet[str]] = lambda alias: {alias},
    ) -> None:
        """*sharing*: the aliases of a cluster, by one of them."""
        self._runners = runners
        self._sharing = sharing

    def topics_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        existing_topics, aliases = set(existing), self._sharing(alias)
        wanted: set[str] = set()
        for runner in self._runners():
            flow = runner.flow.flow
            if aliases.isdisjoint({flow.source, flow.target}):
                continue
            running = runner.internals().connectors
            pairs = runner.policies.plan(runner.clusters()[0].topics, running).pairs
            if flow.source in aliases:
                wanted.update(pair.source for pair in pairs)
            if flow.target in aliases:
                wanted.update(pair.target for pair in pairs)
        return sorted(wanted & existing_topics)

    def topics_changed(self, alias: str) -> None:
        """Let the flows of the cluster read their topics at once."""
        aliases = self._sharing(alias)
        for runner in self._runners():
            if not aliases.isdisjoint({runner.flow.flow.source, runner.flow.flow.target}):
                runner.read_soon()

    def groups_of(self, alias: str, existing: Iterable[str]) -> Sequence[str]:
        """Groups that MirrorMaker 2 translates, on both clusters: where they would resume."""
        wanted: set[str] = set()
        existing_groups, aliases = set(existing), self._sharing(alias)
        for runner in self._runners():
            if aliases.isdisjoint({runner.flow.flow.source, runner.flow.flow.target}):
                continue
            groups = existing_groups | runner.internals().checkpoints.keys()
            wanted.update(filter(runner.policies.wants_group, groups))
        return sorted(wanted)
