"""MirrorMaker 2 in dedicated mode: every flow of the lab in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_lab.mirror_properties import mirror_properties
from mm2slo_lab.process import ManagedProcess, ProcessHandle
from mm2slo_lab.progress import MirroringProbe
from mm2slo_lab.properties import render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_lab.broker import Broker
    from mm2slo_lab.runtime import Runtime
    from mm2slo_lab.topology import LabTopology

READY_TIMEOUT = 120.0
_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"


class MirrorMaker:
    """Start, stop, kill, pause and resume MirrorMaker 2."""

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
        spec = runtime.spec("mm2", topology.mm2_heap, _MAIN, str(self._file))
        self.process = ManagedProcess(spec, outlives_parent=outlives_parent, handle=handle)
        self._overrides: dict[str, str] = {}

    @property
    def running(self) -> bool:
        """Whether the process exists; a paused one does."""
        return self.process.running

    def configure(self, overrides: Mapping[str, str]) -> None:
        """Override properties of the file from the next start on; `{}` undoes it."""
        self._overrides = dict(overrides)

    def start(self, *, wait: bool = True) -> float | None:
        """Write the file and start; with *wait* until every flow copies, and how long that took.

        Waiting needs both clusters up. Raises ProcessError with the last log lines.
        """
        clients = {alias: broker.java() for alias, broker in self._brokers.items()}
        properties = {**mirror_properties(self._topology, clients), **self._overrides}
        self._file.write_text(render(properties), encoding="ascii")
        probe = MirroringProbe(self._topology, self._brokers) if wait else None
        self.process.start()
        if probe is None:
            return None
        return self.process.wait_until(probe.copying, "copying on every flow", READY_TIMEOUT)

    def wait_mirroring(self, timeout: float = READY_TIMEOUT) -> float:
        """Wait until every flow has copied something from now on; the seconds it took."""
        probe = MirroringProbe(self._topology, self._brokers)
        return self.process.wait_until(probe.copying, "copying on every flow", timeout)

    def stop(self) -> None:
        """Shut down cleanly: offsets are flushed, so nothing is copied twice afterwards."""
        self.process.stop()

    def kill(self) -> None:
        """End with SIGKILL: what was copied since the last flush is copied again later."""
        self.process.kill()

    def pause(self) -> None:
        """Freeze: the process exists and does nothing."""
        self.process.pause()

    def resume(self) -> None:
        """Let a frozen process go on."""
        self.process.resume()

    def restart(self, *, wait: bool = True) -> float | None:
        """Stop and start, which also revives failed tasks (dedicated mode has no REST for it)."""
        self.stop()
        return self.start(wait=wait)
