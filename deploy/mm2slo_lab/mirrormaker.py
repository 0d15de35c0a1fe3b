"""MirrorMaker 2 in dedicated mode: all flows in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.properties_text import dump_properties
from mm2slo_lab.managed_process import ManagedProcess, ProcessHandle
from mm2slo_lab.mirror_properties import mirror_properties
from mm2slo_lab.mirroring_probe import MirroringProbe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_lab.broker import Broker
    from mm2slo_lab.java_runtime import Runtime
    from mm2slo_lab.lab_topology import LabTopology

_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"


class MirrorMaker:
    """The process of MirrorMaker 2."""

    def __init__(
        self,
        topology: LabTopology,
        brokers: Mapping[str, Broker],
        runtime: Runtime,
        *,
        outlives_parent: bool = False,
        handle: ProcessHandle | None = None,
    ) -> None:
        self._topology = topology
        self._brokers = brokers
        self._file = runtime.root / "mm2.properties"
        spec = runtime.mirror.spec("mm2", topology.mm2_heap, _MAIN, str(self._file))
        self.process = ManagedProcess(spec, outlives_parent=outlives_parent, handle=handle)
        self._overrides: dict[str, str] = {}

    @property
    def running(self) -> bool:
        """Whether the process exists, including a paused one."""
        return self.process.running

    def configure(self, overrides: Mapping[str, str]) -> None:
        """Override properties from the next start on; `{}` removes the overrides."""
        self._overrides = dict(overrides)

    def start(self, *, wait: bool = True) -> float | None:
        """Start; with *wait*, until every flow replicates; returns the seconds that took.

        Waiting needs running clusters. Raises ProcessError with the last log lines.
        """
        clients = {alias: broker.java() for alias, broker in self._brokers.items()}
        properties = {**mirror_properties(self._topology, clients), **self._overrides}
        self._file.write_text(dump_properties(properties), encoding="ascii")
        probe = MirroringProbe(self._topology, self._brokers) if wait else None
        self.process.start()
        if probe is None:
            return None
        return self.process.wait_until(probe.is_replicating, "replicating all flows")

    def wait_mirroring(self) -> float:
        """Wait until every flow has replicated a new record; returns the seconds it took."""
        probe = MirroringProbe(self._topology, self._brokers)
        return self.process.wait_until(probe.is_replicating, "replicating all flows")

    def stop(self) -> None:
        """Stop cleanly: offsets are flushed, so that no record is replicated twice."""
        self.process.stop()

    def kill(self) -> None:
        """Send SIGKILL: records since the last offset flush are replicated twice."""
        self.process.kill()

    def pause(self) -> None:
        """Send SIGSTOP."""
        self.process.pause()

    def resume(self) -> None:
        """Resume a paused process."""
        self.process.resume()

    def restart(self, *, wait: bool = True) -> float | None:
        """Restart, which also restarts failed tasks (dedicated mode has no REST API for it)."""
        self.stop()
        return self.start(wait=wait)
