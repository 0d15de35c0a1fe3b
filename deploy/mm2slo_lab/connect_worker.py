"""Kafka Connect in distributed mode: one worker per target cluster."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any

from mm2slo_core.properties_text import dump_properties
from mm2slo_lab.connect_properties import connectors, worker_properties
from mm2slo_lab.lab_errors import ProcessError
from mm2slo_lab.managed_process import ManagedProcess, ProcessHandle
from mm2slo_lab.mirroring_probe import MirroringProbe
from mm2slo_lab.ports import HOST, accepts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_lab.broker import Broker
    from mm2slo_lab.java_runtime import Runtime
    from mm2slo_lab.lab_topology import LabTopology

_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"


class ConnectWorker:
    """The worker that runs all mirror connectors with the same target."""

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
        self.alias = alias
        self.rest_port = rest_port
        self._topology = topology
        self._brokers = brokers
        self._file = runtime.root / f"connect-{alias}.properties"
        name = f"connect-{alias}"
        spec = runtime.mirror.spec(name, topology.mm2_heap, _MAIN, str(self._file))
        self.process = ManagedProcess(spec, outlives_parent=outlives_parent, handle=handle)

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
        clients = {alias: broker.java() for alias, broker in self._brokers.items()}
        for pair in self._topology.pairs:
            if pair.target == self.alias:
                for name, config in connectors(self._topology, pair, clients).items():
                    self.rest("PUT", f"/connectors/{_quote(name)}/config", config)

    def wait_mirroring(self) -> float:
        """Wait until every flow has replicated a new record; returns the seconds it took."""
        probe = MirroringProbe(self._topology, self._brokers)
        return self.process.wait_until(probe.is_replicating, "replicating all flows")

    def states(self) -> dict[str, str]:
        """Return states by task, for example `{"us->eu.MirrorSourceConnector-0": "RUNNING"}`."""
        found = self.rest("GET", "/connectors?expand=status")
        return {
            f"{name}-{task['id']}": task["state"]
            for name, entry in found.items()
            for task in entry["status"]["tasks"]
        }

    def restart_connector(self, name: str) -> None:
        """Restart a connector and its tasks."""
        self.rest("POST", f"/connectors/{_quote(name)}/restart?includeTasks=true")

    def rest(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """Call the REST API; returns None for an empty response.

        Raises ProcessError with the message of the worker for an error status.
        """
        request = urllib.request.Request(
            f"http://{HOST}:{self.rest_port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            message = error.read().decode(errors="replace")
            raise ProcessError(f"{method} {path}: HTTP {error.code}: {message}") from error
        return json.loads(text) if text else None

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
