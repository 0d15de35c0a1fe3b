"""The lab: Kafka clusters and MirrorMaker 2 as processes of this machine."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mm2slo_lab.broker import Broker, BrokerPorts
from mm2slo_lab.config_yaml import render_config
from mm2slo_lab.connect import ConnectWorker
from mm2slo_lab.errors import LabError
from mm2slo_lab.jars import jar_paths
from mm2slo_lab.mirrormaker import MirrorMaker
from mm2slo_lab.ports import free_ports
from mm2slo_lab.runtime import Runtime
from mm2slo_lab.state import LabState
from mm2slo_lab.topology import ADMIN, Engine, LabTopology, User

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab.jars import Progress
    from mm2slo_lab.process import ManagedProcess, ProcessHandle

_LISTENERS = ("client", "controller", "rest")


class Lab:
    """A running topology; leaving the context ends every process and deletes its data."""

    def __init__(
        self,
        topology: LabTopology,
        runtime: Runtime,
        ports: Mapping[str, int],
        *,
        outlives_parent: bool = False,
        handles: Mapping[str, ProcessHandle] | None = None,
    ) -> None:
        self.topology = topology
        self.runtime = runtime
        self._ports = ports
        known = handles or {}
        self._brokers = {
            alias: Broker(
                alias,
                BrokerPorts(ports[f"{alias}.client"], ports[f"{alias}.controller"]),
                topology,
                runtime,
                outlives_parent=outlives_parent,
                handle=known.get(alias),
            )
            for alias in topology.clusters
        }
        self._mm2 = MirrorMaker(
            topology,
            self._brokers,
            runtime,
            outlives_parent=outlives_parent,
            handle=known.get("mm2"),
        )
        self._workers = {
            alias: ConnectWorker(
                alias,
                ports[f"{alias}.rest"],
                topology,
                self._brokers,
                runtime,
                outlives_parent=outlives_parent,
                handle=known.get(f"connect-{alias}"),
            )
            for alias in topology.clusters
        }

    @classmethod
    def start(
        cls,
        topology: LabTopology | None = None,
        *,
        root: Path | None = None,
        outlives_parent: bool = False,
        progress: Progress | None = None,
        on_change: Callable[[LabState], None] | None = None,
    ) -> Self:
        """Start every process of *topology* and wait until each flow copies.

        *progress* gets a line for each step, *on_change* the state whenever processes were added.
        Raises LabError; nothing is left running then.
        """
        tell = progress or (lambda _line: None)
        topology = topology or LabTopology()
        directory = root or Path(tempfile.mkdtemp(prefix="mm2slo-lab-"))
        try:
            runtime = Runtime.prepare(topology.kafka_version, directory, progress)
            ports = _choose_ports(topology)
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        lab = cls(topology, runtime, ports, outlives_parent=outlives_parent)
        try:
            lab._start(tell, on_change or (lambda _state: None))
        except BaseException:
            lab.close()
            raise
        return lab

    @classmethod
    def attach(cls, state: LabState) -> Self:
        """The lab that another command left running."""
        runtime = Runtime.prepare(state.topology.kafka_version, state.root)
        return cls(
            state.topology, runtime, state.ports, outlives_parent=True, handles=state.handles
        )

    def _start(self, tell: Progress, on_change: Callable[[LabState], None]) -> None:
        tell(f"starting the clusters {', '.join(self._brokers)}")
        for broker in self._brokers.values():
            broker.format()
            broker.start(wait=False)
        on_change(self.state)
        for broker in self._brokers.values():
            broker.wait_ready()
        if self.topology.engine is Engine.DEDICATED:
            tell("starting MirrorMaker 2")
            self._mm2.start(wait=False)
            on_change(self.state)
            self._mm2.wait_mirroring()
        elif self.topology.engine is Engine.CONNECT:
            tell("starting Kafka Connect with the mirror connectors")
            for worker in self._workers.values():
                worker.start(wait=False)
            on_change(self.state)
            for worker in self._workers.values():
                worker.wait_ready()
            next(iter(self._workers.values())).wait_mirroring()
        tell("the lab is up")

    def cluster(self, alias: str) -> Broker:
        """The cluster of that *alias*. Raises LabError when there is none."""
        try:
            return self._brokers[alias]
        except KeyError:
            known = ", ".join(self._brokers)
            raise LabError(f"no cluster {alias!r} in this lab: it has {known}") from None

    @property
    def mm2(self) -> MirrorMaker:
        """MirrorMaker 2 in dedicated mode. Raises LabError in a lab that has none."""
        if self.topology.engine is not Engine.DEDICATED:
            raise LabError(f"this lab runs no dedicated MirrorMaker 2: {self.topology.engine}")
        return self._mm2

    def connect(self, alias: str) -> ConnectWorker:
        """The Connect worker beside a cluster. Raises LabError in a lab that has none."""
        if self.topology.engine is not Engine.CONNECT:
            raise LabError(f"this lab runs no Connect worker: {self.topology.engine}")
        return self._workers[self.cluster(alias).alias]

    def restart_mirroring(self, flow: Flow) -> None:
        """Restart what copies *flow*, which also revives its failed tasks."""
        if self.topology.engine is Engine.DEDICATED:
            self._mm2.restart()
            return
        worker = self.connect(flow.target)
        worker.process.stop()
        worker.start()
        worker.wait_mirroring()

    @property
    def jars(self) -> tuple[Path, ...]:
        """Kafka's jars, as for a comparison with Kafka's own classes."""
        return jar_paths(self.topology.kafka_version)

    @property
    def processes(self) -> dict[str, ManagedProcess]:
        """Every process of this topology by name, running or not."""
        found = {alias: broker.process for alias, broker in self._brokers.items()}
        if self.topology.engine is Engine.DEDICATED:
            found["mm2"] = self._mm2.process
        elif self.topology.engine is Engine.CONNECT:
            found |= {worker.process.spec.name: worker.process for worker in self._workers.values()}
        return found

    @property
    def state(self) -> LabState:
        """What another command needs to attach."""
        handles = {
            name: process.handle
            for name, process in self.processes.items()
            if process.handle is not None
        }
        return LabState(self.runtime.root, self.topology, self._ports, handles)

    def config_yaml(
        self,
        *,
        flow: Mapping[str, Any] | None = None,
        exporter: Mapping[str, Any] | None = None,
        user: User = ADMIN,
    ) -> str:
        """A matching mm2slo.yaml; *flow* is merged into each flow, *exporter* into its section."""
        clusters = {alias: broker.yaml(user) for alias, broker in self._brokers.items()}
        return render_config(self.topology, clusters, flow=flow, exporter=exporter)

    def close(self) -> None:
        """End every process at once and delete the data."""
        with ExitStack() as every:
            every.callback(shutil.rmtree, self.runtime.root, ignore_errors=True)
            for process in self.processes.values():
                every.callback(process.kill)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _choose_ports(topology: LabTopology) -> dict[str, int]:
    names = [f"{alias}.{listener}" for alias in topology.clusters for listener in _LISTENERS]
    return dict(zip(names, free_ports(len(names)), strict=True))
