"""One Kafka cluster of the lab: a single node that is broker and controller."""

from __future__ import annotations

import base64
import subprocess
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mm2slo_kafka.data_admin import DataAdmin
from mm2slo_lab import clients, tls
from mm2slo_lab.broker_properties import NODE_ID, server_properties
from mm2slo_lab.errors import ProcessError
from mm2slo_lab.ports import HOST, accepts
from mm2slo_lab.process import ManagedProcess, ProcessHandle
from mm2slo_lab.properties import render
from mm2slo_lab.topology import ADMIN, APP, Security, User

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from mm2slo_lab.runtime import Runtime
    from mm2slo_lab.topology import LabTopology

READY_TIMEOUT = 90.0


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """The two listeners of a node."""

    client: int
    controller: int


class Broker:
    """A cluster by its alias: started, stopped, and started again with its ports and data."""

    def __init__(
        self,
        alias: str,
        ports: BrokerPorts,
        topology: LabTopology,
        runtime: Runtime,
        *,
        outlives_parent: bool = False,
        handle: ProcessHandle | None = None,
    ) -> None:
        self.alias = alias
        self.ports = ports
        self._topology = topology
        self._runtime = runtime
        self._directory = runtime.root / alias
        heap = topology.broker_heap
        spec = runtime.spec(alias, heap, "kafka.Kafka", str(self._properties_file))
        self.process = ManagedProcess(spec, outlives_parent=outlives_parent, handle=handle)
        self._admin: DataAdmin | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Where clients connect."""
        return f"{HOST}:{self.ports.client}"

    @property
    def ca_file(self) -> Path | None:
        """The certificate to trust; None without TLS."""
        secured = self._topology.security is Security.SASL_SSL
        return tls.tls_files(self._directory).ca_file if secured else None

    @property
    def admin(self) -> DataAdmin:
        """The cluster's topics and data, as the super user."""
        if self._admin is None:
            self._admin = DataAdmin(self.librdkafka())
        return self._admin

    @property
    def running(self) -> bool:
        """Whether the broker's process exists."""
        return self.process.running

    def librdkafka(self, user: User = ADMIN) -> dict[str, str]:
        """Properties of a librdkafka client."""
        security = self._topology.security
        return clients.librdkafka(self.bootstrap_servers, security, self.ca_file, user)

    def java(self, user: User = ADMIN) -> dict[str, str]:
        """Properties of a Java client."""
        return clients.java(self.bootstrap_servers, self._topology.security, self.ca_file, user)

    def yaml(self, user: User = ADMIN) -> dict[str, Any]:
        """The cluster's entry in mm2slo.yaml."""
        return clients.mm2slo(self.bootstrap_servers, self._topology.security, self.ca_file, user)

    def format(self) -> None:
        """Write the properties file and an empty log directory that belongs to a new cluster."""
        self._directory.mkdir(parents=True, exist_ok=True)
        secured = self._topology.security is Security.SASL_SSL
        properties = server_properties(
            port=self.ports.client,
            controller_port=self.ports.controller,
            log_directory=self._log_directory,
            security=self._topology.security,
            tls=tls.create(self._runtime.java, self._directory) if secured else None,
            overrides=self._topology.broker_properties,
        )
        self._properties_file.write_text(render(properties), encoding="ascii")
        if secured:
            self._format_with_scram()
        else:
            self._write_meta_properties()

    def start(self, *, wait: bool = True) -> None:
        """Start the broker; with *wait* until it serves.

        Raises ProcessError, with the last log lines, when it does not come up.
        """
        self.process.start()
        if wait:
            self.wait_ready()

    def wait_ready(self, timeout: float = READY_TIMEOUT) -> float:
        """Wait until the broker serves metadata that name it; the seconds it took."""
        return self.process.wait_until(self._serves, "serving clients", timeout)

    def stop(self) -> None:
        """Shut the broker down cleanly; ports and data stay."""
        self.process.stop()

    def kill(self) -> None:
        """End the broker with SIGKILL."""
        self.process.kill()

    def pause(self) -> None:
        """Freeze the broker: connections stay open and nothing answers."""
        self.process.pause()

    def resume(self) -> None:
        """Let a frozen broker go on."""
        self.process.resume()

    @property
    def _properties_file(self) -> Path:
        return self._directory / "server.properties"

    @property
    def _log_directory(self) -> Path:
        return self._directory / "data"

    def _serves(self) -> bool:
        # The port first: librdkafka would wait for its reconnect backoff.
        return accepts(self.ports.client) and self.admin.broker_count(timeout=2.0) == 1

    def _write_meta_properties(self) -> None:
        # What `kafka-storage format` writes, without a JVM's start (MetaProperties, version 1).
        self._log_directory.mkdir(parents=True, exist_ok=True)
        meta = {
            "version": "1",
            "cluster.id": _kafka_uuid(),
            "node.id": str(NODE_ID),
            "directory.id": _kafka_uuid(),
        }
        (self._log_directory / "meta.properties").write_text(render(meta), encoding="ascii")

    def _format_with_scram(self) -> None:
        # The credentials must be there before the broker's first own connection.
        users = [
            f"SCRAM-SHA-512=[name={user.name},password={user.password}]" for user in (ADMIN, APP)
        ]
        command = self._runtime.command(
            256,
            "kafka.tools.StorageTool",
            *("format", "-t", _kafka_uuid(), "-c", str(self._properties_file)),
            *(argument for user in users for argument in ("--add-scram", user)),
        )
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if answer.returncode != 0:
            last = (answer.stdout + answer.stderr).strip().splitlines()[-3:]
            raise ProcessError(f"formatting {self.alias} failed: {' '.join(last)}")


def _kafka_uuid() -> str:
    """A random id in Kafka's spelling (org.apache.kafka.common.Uuid: URL-safe base64, no padding).

    Kafka's own never start with a dash, which its tools would take for an option.
    """
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
