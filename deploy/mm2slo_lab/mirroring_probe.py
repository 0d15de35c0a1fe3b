"""Detects that MirrorMaker 2 replicates, by the heartbeats of each flow on its target."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_lab.broker import Broker
    from mm2slo_lab.lab_topology import LabTopology


class MirroringProbe:
    """Detects that every flow has replicated a heartbeat since the probe was created."""

    def __init__(self, topology: LabTopology, brokers: Mapping[str, Broker]) -> None:
        self._topology = topology
        self._brokers = brokers
        self._waiting = {flow: self._heartbeats_on_target(flow) for flow in topology.flows}

    def is_replicating(self) -> bool:
        for flow, before in list(self._waiting.items()):
            if self._heartbeats_on_target(flow) > before:
                del self._waiting[flow]
        return not self._waiting

    def _heartbeats_on_target(self, flow: Flow) -> int:
        topic = self._topology.heartbeats_topic(flow)
        return sum(self._brokers[flow.target].admin.end_offsets(topic).values())
