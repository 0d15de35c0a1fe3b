"""The lab: Kafka clusters and MirrorMaker 2 as processes on one machine, without containers.

The lab of `mm2slo lab` outlives the command that started it; its state is a file, one per user.
"""

import fcntl
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from mm2slo_core.local_environment import state_folder
from mm2slo_core.topology import Flow
from mm2slo_lab import delay_proxy
from mm2slo_lab.broker import Broker, BrokerPorts
from mm2slo_lab.kafka_runtime import Progress, Runtime, jar_paths
from mm2slo_lab.lab_topology import (
    ADMIN,
    LabEngine,
    LabError,
    LabTopology,
    User,
    mirror_version,
)
from mm2slo_lab.managed_process import (
    HOST,
    ManagedProcess,
    ProcessHandle,
    ProcessSpec,
    accepts,
    free_ports,
)
from mm2slo_lab.mirror_processes import ConnectWorker, MirrorMaker
from mm2slo_lab.mirror_properties import render_config

_LISTENERS = ("client", "controller", "rest")
_FAR_LISTENERS = ("far", "proxy")

_FORMAT = 1


@dataclass(frozen=True, slots=True)
class LabState:
    """Folder, topology, ports by listener, and processes by name."""

    root: Path
    topology: LabTopology
    ports: Mapping[str, int]
    handles: Mapping[str, ProcessHandle]

    def render(self) -> str:
        """Render the state file."""
        document = {
            "format": _FORMAT,
            "root": str(self.root),
            "topology": self.topology.to_json(),
            "ports": dict(self.ports),
            "processes": {name: asdict(handle) for name, handle in self.handles.items()},
        }
        return json.dumps(document, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a state file. Raises LabError for another format."""
        document: dict[str, Any] = json.loads(text)
        if document.get("format") != _FORMAT:
            raise LabError(
                f"the lab's state has format {document.get('format')!r}, expected {_FORMAT}:"
                " stop that lab with the mm2slo version that started it"
            )
        return cls(
            root=Path(document["root"]),
            topology=LabTopology.from_json(document["topology"]),
            ports=document["ports"],
            handles={
                name: ProcessHandle(**handle) for name, handle in document["processes"].items()
            },
        )


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
                BrokerPorts(
                    ports[f"{alias}.client"],
                    ports[f"{alias}.controller"],
                    *(ports.get(f"{alias}.{each}") for each in _FAR_LISTENERS),
                ),
                topology,
                runtime,
                outlives_parent=outlives_parent,
                handle=known.get(alias),
            )
            for alias in topology.clusters
        }
        self._proxies: dict[str, ManagedProcess] = {}
        self._mm2 = MirrorMaker(
            "mm2",
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
        # Saved before anything is awaited: a start that is killed leaves processes to find.
        on_change(self.state)
        for broker in self._brokers.values():
            broker.wait_ready()
        if self.topology.engine is LabEngine.DEDICATED:
            report_step("starting MirrorMaker 2")
            self._mm2.start(wait=False)
            on_change(self.state)
            self._mm2.wait_mirroring()
        elif self.topology.engine is LabEngine.CONNECT:
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

    def set_round_trip(self, alias: str, milliseconds: float) -> str:
        """Put a long way before a cluster of a far lab; returns the servers beyond it.

        Connections through it are closed.
        """
        ports = self.cluster(alias).ports
        if ports.far is None or ports.proxy is None:
            raise LabError("this lab has no far listeners: start it with far=True")
        if alias in self._proxies:
            self._proxies[alias].kill()
        arguments = (str(ports.proxy), str(ports.far), f"{milliseconds:g}")
        command = (sys.executable, "-I", "-S", delay_proxy.__file__, *arguments)
        spec = ProcessSpec(f"proxy-{alias}", command, self.runtime.root / f"proxy-{alias}.log")
        proxy = self._proxies[alias] = ManagedProcess(spec)
        proxy.start()
        proxy.wait_until(partial(accepts, ports.proxy), "accepting connections")
        return f"{HOST}:{ports.proxy}"

    @property
    def mm2(self) -> MirrorMaker:
        """MirrorMaker 2 in dedicated mode. Raises LabError for another engine."""
        if self.topology.engine is not LabEngine.DEDICATED:
            raise LabError(
                f"this lab has no dedicated MirrorMaker 2; its engine is {self.topology.engine}"
            )
        return self._mm2

    def connect(self, alias: str) -> ConnectWorker:
        """Return the Connect worker of a target cluster. Raises LabError for another engine."""
        if self.topology.engine is not LabEngine.CONNECT:
            raise LabError(f"this lab has no Connect worker; its engine is {self.topology.engine}")
        return self._workers[self.cluster(alias).alias]

    def restart_mirroring(self, flow: Flow) -> None:
        """Restart the process that replicates *flow*, which also restarts failed tasks."""
        if self.topology.engine is LabEngine.DEDICATED:
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
        if self.topology.engine is LabEngine.DEDICATED:
            found["mm2"] = self._mm2.process
        elif self.topology.engine is LabEngine.CONNECT:
            found |= {worker.process.spec.name: worker.process for worker in self._workers.values()}
        return found | {proxy.spec.name: proxy for proxy in self._proxies.values()}

    @property
    def running(self) -> tuple[str, ...]:
        """Names of the processes that are running."""
        return tuple(name for name, process in self.processes.items() if process.running)

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
    listeners = (*_LISTENERS, *(_FAR_LISTENERS if topology.far else ()))
    names = [f"{alias}.{listener}" for alias in topology.clusters for listener in listeners]
    return dict(zip(names, free_ports(len(names)), strict=True))


def start_persistent_lab(topology: LabTopology, progress: Progress | None = None) -> Lab:
    """Start a lab that outlives this program, and write its mm2slo.yaml.

    Removes the remains of a dead lab. Raises LabError when one is running.
    """
    with _exclusive():
        file = _state_file()
        if file.exists():
            if running := attach_persistent_lab().running:
                raise LabError(
                    f"a lab is already running ({', '.join(running)}): show it with"
                    " `mm2slo lab status`, stop it with `mm2slo lab down`"
                )
            _delete_state()
        try:
            lab = Lab.start(
                topology,
                root=state_directory() / "data",
                outlives_parent=True,
                progress=progress,
                on_change=lambda state: save_lab_state(state, file),
            )
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        lab_config_file(lab).write_text(lab.config_yaml(), encoding="utf-8")
        save_lab_state(lab.state, file)
        return lab


def lab_config_file(lab: Lab) -> Path:
    """Return the path of the lab's mm2slo.yaml."""
    return lab.runtime.root / "mm2slo.yaml"


@contextmanager
def open_lab_for_update() -> Iterator[Lab]:
    """Open the running lab to start and stop processes; saves its state afterwards."""
    with _exclusive():
        lab = attach_persistent_lab()
        try:
            yield lab
        finally:
            save_lab_state(lab.state, _state_file())


def stop_persistent_lab() -> tuple[str, ...]:
    """Stop the lab and delete its data; returns the names of processes that were running.

    Raises LabError if no lab is running.
    """
    with _exclusive():
        lab = attach_persistent_lab()
        ran = lab.running
        lab.close()
        _delete_state()
        return ran


def attach_persistent_lab() -> Lab:
    """Return the lab that `mm2slo lab up` has started. Raises LabError if there is no state."""
    try:
        text = _state_file().read_text(encoding="utf-8")
    except FileNotFoundError:
        raise LabError("no lab is running: start one with `mm2slo lab up`") from None
    return Lab.attach(LabState.parse(text))


def _delete_state() -> None:
    shutil.rmtree(state_directory() / "data", ignore_errors=True)
    _state_file().unlink(missing_ok=True)


def _state_file() -> Path:
    return state_directory() / "state.json"


@contextmanager
def _exclusive() -> Iterator[None]:
    directory = state_directory()
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(
                "another `mm2slo lab` command is running: wait for it to finish"
            ) from None
        yield


def state_directory() -> Path:
    """Return the state folder of the persistent lab: `$XDG_STATE_HOME/mm2slo/lab`."""
    return state_folder() / "lab"


def save_lab_state(state: LabState, file: Path) -> None:
    """Replace *file* atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(state.render(), encoding="utf-8")
    fresh.replace(file)
