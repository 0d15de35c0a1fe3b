"""The flows that are served, the clusters they touch, and the canary process they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.config.flow import PolicyKind
from mm2slo_core.errors import UserError
from mm2slo_exporter.canary.supervisor import CanarySupervisor
from mm2slo_exporter.service.canary_specs import canary_spec
from mm2slo_exporter.service.clusters import Clusters, check_clients
from mm2slo_exporter.service.interests import FlowInterests
from mm2slo_exporter.service.policies import FlowRulebook
from mm2slo_exporter.service.runner import Ends, FlowRunner
from mm2slo_exporter.threads import all_at_once
from mm2slo_kafka.errors import KafkaOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mm2slo_core.config import Config
    from mm2slo_core.config.cluster import ClusterConfig
    from mm2slo_core.config.flow import FlowConfig
    from mm2slo_exporter.canary.events import Event
    from mm2slo_exporter.canary.spec import CanarySpec
    from mm2slo_exporter.health import Health
    from mm2slo_exporter.observation import Observation
    from mm2slo_exporter.state.model import FlowReport


class Flows:
    """Opens, replaces and closes flows. Changes take turns; reading is allowed meanwhile."""

    def __init__(
        self,
        config: Config,
        selected: Sequence[str],
        health: Health,
        deliver: Callable[[FlowRunner, Observation], None],
    ) -> None:
        """*selected* are flow labels, none for all; *deliver* takes each round that was read."""
        self.config = config
        self._selected = tuple(selected)
        self._health = health
        self._deliver = deliver
        self._runners: dict[str, FlowRunner] = {}
        self._interests = FlowInterests(self.running)
        self._clusters = self._new_clusters(config)
        self._canary: CanarySupervisor | None = None
        self._canary_specs: list[CanarySpec] = []

    # What is there

    def running(self) -> list[FlowRunner]:
        """The flows that are served now."""
        return list(self._runners.values())

    def reports(self) -> list[FlowReport]:
        """The newest report of each flow that has one."""
        return [runner.report for runner in self.running() if runner.report is not None]

    def request_totals(self) -> Mapping[tuple[str, str], int]:
        """Kafka requests sent, by cluster and API."""
        return self._clusters.request_totals()

    # Canaries

    def take_canary_events(self) -> None:
        """Hand each event of the canary process to its flow."""
        if self._canary is None:
            return
        for event in self._canary.drain():
            self._take(event)

    def hint_canaries(self) -> None:
        """Tell the canary process what the next canaries should carry."""
        if self._canary is not None:
            self._canary.hint({runner.flow.label: runner.hint for runner in self.running()})

    # Changes

    def open(self) -> None:
        """Start what the configuration wants and is not running yet.

        Raises UserError for client properties that cannot work.
        """
        self._open(self.config)

    def apply(self, config: Config) -> int:
        """Stop what changed, start what is new; the number of flows started.

        Raises UserError for client properties that cannot work; all goes on unchanged then.
        """
        wanted = {flow.label: flow for flow in config.select(self._selected)}
        moved, everything = self._moved(config)
        _check({alias: config.clusters[alias] for alias in moved if alias in config.clusters})
        changed = [
            label
            for label, runner in self._runners.items()
            if everything
            or wanted.get(label) != runner.flow
            or {runner.flow.flow.source, runner.flow.flow.target} & moved
        ]
        self._close(changed)
        self._clusters.close([alias for alias in moved if alias in self._clusters])
        if everything:
            self._clusters = self._new_clusters(config)
        opened = self._open(config)
        self.config = config
        return opened

    def close(self) -> None:
        """End all flows, the canary process and the clusters."""
        self._stop_canary()
        self._close(list(self._runners))
        self._clusters.close_all()

    # Building

    def _moved(self, config: Config) -> tuple[set[str], bool]:
        """Clusters whose settings differ, and whether each one is to be opened anew."""
        old = self.config
        everything = config.exporter != old.exporter
        aliases = old.clusters.keys() | config.clusters.keys()
        return {
            alias
            for alias in aliases
            if everything or old.clusters.get(alias) != config.clusters.get(alias)
        }, everything

    def _new_clusters(self, config: Config) -> Clusters:
        return Clusters(config.exporter, self._interests, self._health)

    def _open(self, config: Config) -> int:
        flows = config.select(self._selected)
        new = [flow for flow in flows if flow.label not in self._runners]
        aliases = {alias for flow in flows for alias in (flow.flow.source, flow.flow.target)}
        wanted = {alias: config.clusters[alias] for alias in sorted(aliases)}
        try:
            self._clusters.open(wanted)
        except KafkaOperationError as problem:
            raise UserError(str(problem)) from None
        if new:
            # What the old process still tells would be taken for news by a flow started anew.
            self._stop_canary()
        for flow in new:
            self._runners[flow.label] = self._runner(config, flow)
        for flow in new:
            self._runners[flow.label].start()
        specs = [canary_spec(config, runner.rulebook) for runner in self.running()]
        if self._canary is None or specs != self._canary_specs:
            self._restart_canary(specs)
        return len(new)

    def _close(self, labels: Iterable[str]) -> None:
        all_at_once([self._runners.pop(label).stop for label in list(labels)])

    def _runner(self, config: Config, flow: FlowConfig) -> FlowRunner:
        carrier = config.carrier(flow)
        return FlowRunner(
            FlowRulebook(flow, carrier),
            Ends(self._clusters[flow.flow.source], self._clusters[flow.flow.target]),
            config.exporter,
            self._health,
            self._deliver,
            carrier=carrier,
            shared_target=shares_target(config, flow),
        )

    def _restart_canary(self, specs: list[CanarySpec]) -> None:
        self._stop_canary()
        self._canary_specs = specs
        self._canary = CanarySupervisor(specs, on_start=self._canary_started)
        self._canary.start()

    def _stop_canary(self) -> None:
        if self._canary is not None:
            self._canary.stop()
            self._canary = None

    def _canary_started(self) -> None:
        for runner in self.running():
            runner.canary_process_started()

    def _take(self, event: Event) -> None:
        runner = self._runners.get(event.flow)
        if runner is not None:
            runner.take(event)


def shares_target(config: Config, flow: FlowConfig) -> bool:
    """Whether another flow writes the same names on the same target: identity fan-in."""
    return flow.policy.kind is PolicyKind.IDENTITY and any(
        other is not flow
        and other.flow.target == flow.flow.target
        and other.policy.kind is PolicyKind.IDENTITY
        for other in config.flows
    )


def _check(clusters: Mapping[str, ClusterConfig]) -> None:
    try:
        check_clients(clusters)
    except KafkaOperationError as problem:
        raise UserError(str(problem)) from None
