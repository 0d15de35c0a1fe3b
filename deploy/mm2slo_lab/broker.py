"""A Kafka cluster of the lab: one node that is broker and controller."""

import base64
import shutil
import subprocess
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mm2slo_core.file_syntax import dump_properties
from mm2slo_core.local_environment import cache_folder
from mm2slo_lab import broker_properties
from mm2slo_lab.broker_properties import NODE_ID, server_properties
from mm2slo_lab.kafka_runtime import Runtime, resolved_version
from mm2slo_lab.lab_data import DataAdmin
from mm2slo_lab.lab_topology import ADMIN, APP, LabSecurity, LabTopology, ProcessError, User
from mm2slo_lab.managed_process import HOST, LabProcess, ManagedProcess, ProcessHandle, accepts


@dataclass(frozen=True, slots=True)
class BrokerPorts:
    """Ports of the listeners of a node."""

    client: int
    controller: int
    far: int | None = None
    """Of the listener behind the proxy that delays."""
    proxy: int | None = None


class Broker(LabProcess):
    """A cluster; it keeps its ports and data when it is restarted."""

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
        return f"{HOST}:{self.ports.client}"

    @property
    def ca_file(self) -> Path | None:
        """The CA certificate; None without TLS."""
        secured = self._topology.security is LabSecurity.SASL_SSL
        return broker_properties.tls_files(self._directory).ca_file if secured else None

    @property
    def admin(self) -> DataAdmin:
        """Admin client of the super user."""
        if self._admin is None:
            self._admin = DataAdmin(self.librdkafka())
        return self._admin

    def librdkafka(self, user: User = ADMIN) -> dict[str, str]:
        """Return the properties of a librdkafka client."""
        return broker_properties.librdkafka(*self._access, user)

    def java(self, user: User = ADMIN) -> dict[str, str]:
        """Return the properties of a Java client."""
        return broker_properties.java(*self._access, user)

    def yaml(self, user: User = ADMIN) -> dict[str, Any]:
        """Return the cluster's entry in mm2slo.yaml."""
        return broker_properties.mm2slo(*self._access, user)

    def format(self) -> None:
        """Write the properties file, and format the log directory for a new cluster."""
        self._directory.mkdir(parents=True, exist_ok=True)
        secured = self._topology.security is LabSecurity.SASL_SSL
        properties = server_properties(
            port=self.ports.client,
            controller_port=self.ports.controller,
            log_directory=self._log_directory,
            security=self._topology.security,
            tls=broker_properties.create(self._runtime.java, self._directory) if secured else None,
            overrides={**self._far_listener(), **self._topology.broker_properties},
        )
        self._properties_file.write_text(dump_properties(properties), encoding="ascii")
        if secured:
            # The credentials must exist before the broker connects to itself.
            users = [f"SCRAM-SHA-512=[name={u.name},password={u.password}]" for u in (ADMIN, APP)]
            options = (option for user in users for option in ("--add-scram", user))
            _format(self._runtime, self._properties_file, *options)
        else:
            template = formatted_log(self._runtime, self._topology.kafka_version)
            write_log_directory(self._log_directory, NODE_ID, template)

    def _far_listener(self) -> dict[str, str]:
        """A second listener, whose clients reach the broker through the proxy alone."""
        client, far = f"CLIENT://{HOST}:{self.ports.client}", self.ports.far
        if far is None:
            return {}
        return {
            "listeners": f"{client},FAR://{HOST}:{far},CONTROLLER://{HOST}:{self.ports.controller}",
            "advertised.listeners": f"{client},FAR://{HOST}:{self.ports.proxy}",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,FAR:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }

    def start(self, *, wait: bool = True) -> None:
        """Start the broker; with *wait*, until it is ready.

        Raises ProcessError with the last log lines when it does not start.
        """
        self.process.start()
        if wait:
            self.wait_ready()

    def wait_ready(self) -> float:
        """Wait until the broker serves its metadata; returns the seconds it took."""
        return self.process.wait_until(self._is_serving, "serving clients")

    @property
    def _access(self) -> tuple[str, LabSecurity, Path | None]:
        return self.bootstrap_servers, self._topology.security, self.ca_file

    @property
    def _properties_file(self) -> Path:
        return self._directory / "server.properties"

    @property
    def _log_directory(self) -> Path:
        return self._directory / "data"

    def _is_serving(self) -> bool:
        # Check the port first: librdkafka would wait for its reconnect backoff.
        return accepts(self.ports.client) and self.admin.broker_count(timeout=2.0) == 1


def formatted_log(runtime: Runtime, version: str) -> Path:
    """A log directory that Kafka's tool has formatted, made once per user: it takes a JVM.

    The tool writes the newest features of its version. Without them a broker runs as the oldest
    version would: without KIP-848, Streams and share groups.
    """
    template = cache_folder() / f"formatted-{resolved_version(version)}"
    if not template.exists():
        with tempfile.TemporaryDirectory(prefix="formatting-", dir=cache_folder()) as staging:
            data, file = Path(staging, "data"), Path(staging, "server.properties")
            properties = server_properties(
                port=9092,
                controller_port=9093,
                log_directory=data,
                security=LabSecurity.PLAINTEXT,
                tls=None,
                overrides={},
            )
            file.write_text(dump_properties(properties), encoding="ascii")
            _format(runtime, file)
            with suppress(OSError):  # another process was faster
                data.rename(template)
    return template


def _format(runtime: Runtime, properties: Path, *arguments: str) -> None:
    tool = ("kafka.tools.StorageTool", "format", "-t", _kafka_uuid(), "-c", str(properties))
    command = runtime.command(256, *tool, *arguments)
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if result.returncode != 0:
        last = (result.stdout + result.stderr).strip().splitlines()[-3:]
        raise ProcessError(f"formatting {properties} failed: {' '.join(last)}")


def write_log_directory(directory: Path, node_id: int, template: Path, cluster: str = "") -> None:
    """Fill the log directory of a new broker from *template*; a new cluster without *cluster*."""
    shutil.copytree(template, directory)
    meta = {
        "version": "1",
        "cluster.id": cluster or _kafka_uuid(),
        "node.id": str(node_id),
        "directory.id": _kafka_uuid(),
    }
    (directory / "meta.properties").write_text(dump_properties(meta), encoding="ascii")


def _kafka_uuid() -> str:
    """Create a random id like org.apache.kafka.common.Uuid: URL-safe base64, no padding.

    No leading dash, which Kafka's tools would parse as an option.
    """
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
