"""The lab: Kafka clusters and MirrorMaker 2 as processes on this machine."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from mm2slo_lab.broker import Broker, BrokerPorts
from mm2slo_lab.config_yaml import render_config
from mm2slo_lab.connect_worker import ConnectWorker
from mm2slo_lab.java_runtime import Runtime
from mm2slo_lab.kafka_jars import jar_paths
from mm2slo_lab.kafka_versions import mirror_version
from mm2slo_lab.lab_errors import LabError
from mm2slo_lab.lab_state import LabState
from mm2slo_lab.lab_topology import ADMIN, Engine, LabTopology, User
from mm2slo_lab.mirrormaker import MirrorMaker
from mm2slo_lab.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab.kafka_jars import Progress
    from mm2slo_lab.managed_process import ManagedProcess, ProcessHandle

_LISTENERS = ("client", "controller", "rest")


class Lab:
    """A running topology; a context manager that stops all processes and deletes their data."""

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
        """Start all processes of *topology* and wait until every flow replicates.

        *progress* gets a line per step, *on_change* the state after processes were added. Raises
        LabError after stopping all processes.
        """
        report_step = progress or (lambda _line: None)
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
            lab._start(report_step, on_change or (lambda _state: None))
        except BaseException:
            lab.close()
            raise
        return lab

    @classmethod
    def attach(cls, state: LabState) -> Self:
        """Attach to the lab that another command has started."""
        runtime = Runtime.prepare(state.topology.kafka_version, state.root)
        return cls(
            state.topology, runtime, state.ports, outlives_parent=True, handles=state.handles
        )

    def _start(self, report_step: Progress, on_change: Callable[[LabState], None]) -> None:
        report_step(f"starting the clusters {', '.join(self._brokers)}")
        for broker in self._brokers.values():
            broker.format()
            broker.start(wait=False)
        on_change(self.state)
        for broker in self._brokers.values():
            broker.wait_ready()
        if self.topology.engine is Engine.DEDICATED:
            report_step("starting MirrorMaker 2")
            self._mm2.start(wait=False)
            on_change(self.state)
            self._mm2.wait_mirroring()
        elif self.topology.engine is Engine.CONNECT:
            report_step("starting Kafka Connect with the mirror connectors")
            for worker in self._workers.values():
                worker.start(wait=False)
            on_change(self.state)
            for worker in self._workers.values():
                worker.wait_ready()
            next(iter(self._workers.values())).wait_mirroring()
        report_step("the lab is running")

    def cluster(self, alias: str) -> Broker:
        """Return a cluster. Raises LabError when it does not exist."""
        try:
            return self._brokers[alias]
        except KeyError:
            known = ", ".join(self._brokers)
            raise LabError(f"unknown cluster {alias!r}; expected one of {known}") from None

    @property
    def mm2(self) -> MirrorMaker:
        """MirrorMaker 2 in dedicated mode. Raises LabError for another engine."""
        if self.topology.engine is not Engine.DEDICATED:
            raise LabError(
                f"this lab has no dedicated MirrorMaker 2; its engine is {self.topology.engine}"
            )
        return self._mm2

    def connect(self, alias: str) -> ConnectWorker:
        """Return the Connect worker of a target cluster. Raises LabError for another engine."""
        if self.topology.engine is not Engine.CONNECT:
            raise LabError(f"this lab has no Connect worker; its engine is {self.topology.engine}")
        return self._workers[self.cluster(alias).alias]

    def restart_mirroring(self, flow: Flow) -> None:
        """Restart the process that replicates *flow*, which also restarts failed tasks."""
        if self.topology.engine is Engine.DEDICATED:
            self._mm2.restart()
            return
        worker = self.connect(flow.target)
        worker.process.stop()
        worker.start()
        worker.wait_mirroring()

    @property
    def jars(self) -> tuple[Path, ...]:
        """The jars of MirrorMaker 2, with Kafka's clients."""
        return jar_paths(mirror_version(self.topology.kafka_version))

    @property
    def processes(self) -> dict[str, ManagedProcess]:
        """All processes by name, running or not."""
        found = {alias: broker.process for alias, broker in self._brokers.items()}
        if self.topology.engine is Engine.DEDICATED:
            found["mm2"] = self._mm2.process
        elif self.topology.engine is Engine.CONNECT:
            found |= {worker.process.spec.name: worker.process for worker in self._workers.values()}
        return found

    @property
    def state(self) -> LabState:
        """State that another command needs to attach."""
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
        """Render the mm2slo.yaml; *flow* is merged into each flow, *exporter* into its section."""
        clusters = {alias: broker.yaml(user) for alias, broker in self._brokers.items()}
        return render_config(self.topology, clusters, flow=flow, exporter=exporter)

    def close(self) -> None:
        """Kill all processes and delete the data."""
        with ExitStack() as stack:
            stack.callback(shutil.rmtree, self.runtime.root, ignore_errors=True)
            for process in self.processes.values():
                stack.callback(process.kill)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def _choose_ports(topology: LabTopology) -> dict[str, int]:
    names = [f"{alias}.{listener}" for alias in topology.clusters for listener in _LISTENERS]
    return dict(zip(names, free_ports(len(names)), strict=True))
