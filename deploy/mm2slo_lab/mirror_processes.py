"""MirrorMaker 2 as processes: in dedicated mode, or in Kafka Connect, one worker per target.

It is ready once every flow has replicated a heartbeat to its target.
"""

from __future__ import annotations

import urllib.error
import urllib.parse
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from mm2slo_core.file_syntax import dump_properties
from mm2slo_core.topology import Flow
from mm2slo_lab.broker import Broker
from mm2slo_lab.kafka_runtime import Runtime
from mm2slo_lab.lab_topology import LabTopology, ProcessError
from mm2slo_lab.managed_process import (
    HOST,
    LabProcess,
    ManagedProcess,
    ProcessHandle,
    accepts,
    request_json,
)
from mm2slo_lab.mirror_properties import connectors, mirror_properties, worker_properties


class MirrorProcess(LabProcess):
    """A process that runs mirror connectors, configured by a properties file."""

    main: ClassVar[str]

    def __init__(
        self,
        name: str,
        topology: LabTopology,
        brokers: Mapping[str, Broker],
        runtime: Runtime,
        *,
        outlives_parent: bool,
        handle: ProcessHandle | None,
    ) -> None:
        self._topology = topology
        self._brokers = brokers
        self._file = runtime.root / f"{name}.properties"
        spec = runtime.mirror.spec(name, topology.mm2_heap, self.main, str(self._file))
        self.process = ManagedProcess(spec, outlives_parent=outlives_parent, handle=handle)

    def wait_mirroring(self, probe: MirroringProbe | None = None) -> float:
        """Wait until every flow has replicated a new record; returns the seconds it took."""
        probe = probe or MirroringProbe(self._topology, self._brokers)
        return self.process.wait_until(probe.is_replicating, "replicating all flows")

    def _clients(self) -> dict[str, dict[str, str]]:
        return {alias: broker.java() for alias, broker in self._brokers.items()}


class MirrorMaker(MirrorProcess):
    """MirrorMaker 2 in dedicated mode."""

    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    _overrides: Mapping[str, str] = MappingProxyType({})

    def configure(self, overrides: Mapping[str, str]) -> None:
        """Override properties from the next start on; `{}` removes the overrides."""
        self._overrides = dict(overrides)

    def start(self, *, wait: bool = True) -> float | None:
        """Start; with *wait*, until every flow replicates; returns the seconds that took.

        Waiting needs running clusters. Raises ProcessError with the last log lines.
        """
        properties = {**mirror_properties(self._topology, self._clients()), **self._overrides}
        self._file.write_text(dump_properties(properties), encoding="ascii")
        probe = MirroringProbe(self._topology, self._brokers) if wait else None
        self.process.start()
        return None if probe is None else self.wait_mirroring(probe)

    def restart(self, *, wait: bool = True) -> float | None:
        """Restart, which also restarts failed tasks (dedicated mode has no REST API for it)."""
        self.stop()
        return self.start(wait=wait)


class ConnectWorker(MirrorProcess):
    """The worker that runs all mirror connectors with the same target."""

    main = "org.apache.kafka.connect.cli.ConnectDistributed"

    def __init__(
        self,
        alias: str,
        rest_port: int,
        topology: LabTopology,
        brokers: Mapping[str, Broker],
        runtime: Runtime,
        *,
        outlives_parent: bool = False,
        handle: ProcessHandle | None = None,
    ) -> None:
        super().__init__(
            f"connect-{alias}", topology, brokers, runtime,
            outlives_parent=outlives_parent, handle=handle,
        )  # fmt: skip
        self.alias = alias
        self.rest_port = rest_port

    def start(self, *, wait: bool = True) -> None:
        """Start the worker; with *wait*, until its REST API responds and its connectors exist."""
        properties = worker_properties(self._brokers[self.alias].java(), self.rest_port)
        self._file.write_text(dump_properties(properties), encoding="ascii")
        self.process.start()
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        """Wait for the REST API, then create or update the connectors."""
        self.process.wait_until(self._is_responding, "serving REST requests")
        for pair in self._topology.pairs:
            if pair.target == self.alias:
                for name, config in connectors(self._topology, pair, self._clients()).items():
                    self.rest("PUT", f"/connectors/{_quote(name)}/config", config)

    def states(self) -> dict[str, str]:
        """Return states by task, for example `{"us->eu.MirrorSourceConnector-0": "RUNNING"}`."""
        connectors = self.rest("GET", "/connectors?expand=status")
        return {
            f"{name}-{task['id']}": task["state"]
            for name, entry in connectors.items()
            for task in entry["status"]["tasks"]
        }

    def restart_connector(self, name: str) -> None:
        """Restart a connector and its tasks."""
        # Without includeTasks, Connect restarts only the connector and no task (KIP-745).
        self.rest("POST", f"/connectors/{_quote(name)}/restart?includeTasks=true")

    def rest(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """Call the REST API; returns None for an empty response.

        Raises ProcessError with the message of the worker for an error status.
        """
        url = f"http://{HOST}:{self.rest_port}{path}"
        try:
            return request_json(url, method, body)
        except urllib.error.HTTPError as error:
            message = error.read().decode(errors="replace")
            raise ProcessError(f"{method} {path}: HTTP {error.code}: {message}") from error

    def _is_responding(self) -> bool:
        if not accepts(self.rest_port):
            return False
        try:
            self.rest("GET", "/connectors")
        except (ProcessError, OSError):
            # The port opens before the worker has joined its group.
            return False
        return True


def _quote(name: str) -> str:
    return urllib.parse.quote(name, safe="")


class MirroringProbe:
    """Detects that every flow has replicated a heartbeat since the probe was created."""

    def __init__(self, topology: LabTopology, brokers: Mapping[str, Broker]) -> None:
        self._topology = topology
        self._brokers = brokers
        # Heartbeats, since they always flow: the connector of the reverse pair writes one a second
        # to the source, and IdentityReplicationPolicy, too, copies them under the alias.
        self._waiting = {flow: self._heartbeats_on_target(flow) for flow in topology.flows}

    def is_replicating(self) -> bool:
        for flow, before in list(self._waiting.items()):
            if self._heartbeats_on_target(flow) > before:
                del self._waiting[flow]
        return not self._waiting

    def _heartbeats_on_target(self, flow: Flow) -> int:
        topic = self._topology.heartbeats_topic(flow)
        return sum(self._brokers[flow.target].admin.end_offsets(topic).values())
