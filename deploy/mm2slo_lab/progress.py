"""Whether MirrorMaker 2 copies: seen from outside, on the copied heartbeats of each flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab.broker import Broker
    from mm2slo_lab.topology import LabTopology


class MirroringProbe:
    """Remembers how far each copy was at construction; `copying` once all have moved on."""

    def __init__(self, topology: LabTopology, brokers: Mapping[str, Broker]) -> None:
        self._topology = topology
        self._brokers = brokers
        self._waiting = {flow: self._copied(flow) for flow in topology.flows}

    def copying(self) -> bool:
        """Whether every flow has copied a heartbeat since."""
        for flow, before in list(self._waiting.items()):
            if self._copied(flow) > before:
                del self._waiting[flow]
        return not self._waiting

    def _copied(self, flow: Flow) -> int:
        topic = self._topology.heartbeats_topic(flow)
        return sum(self._brokers[flow.target].admin.end_offsets(topic).values())
