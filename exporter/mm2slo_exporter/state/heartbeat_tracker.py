"""Tracks MirrorMaker 2's heartbeats of a flow over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_core.time_slices import DEFAULT_HEARTBEAT_AGE
from mm2slo_exporter.state.flow_report import HeartbeatState, LatencyHistogram
from mm2slo_exporter.state.latency_counter import LatencyCounter

if TYPE_CHECKING:
    from mm2slo_core.config.flow_config import FlowConfig
    from mm2slo_exporter.canary.canary_events import HeartbeatSeen

_GAP_SHARE = 1.5
"""Gaps count from 1.5 intervals: emission times vary, and a late heartbeat is not missing."""


class HeartbeatTracker:
    """Age, latency and gaps of the heartbeats that arrive on the target."""

    def __init__(self, flow: FlowConfig) -> None:
        self.flow = flow
        self._newest: dict[str, float] = {}
        self._received = 0
        self._missing = 0
        self._latencies = LatencyCounter()

    def observe(self, beat: HeartbeatSeen) -> None:
        """Process one heartbeat; one that existed before reading started has no latency."""
        before = self._newest.get(beat.emitter)
        self._newest[beat.emitter] = max(beat.emitted_at, before or beat.emitted_at)
        if beat.replayed:
            return
        self._received += 1
        self._latencies.add((beat.at - beat.emitted_at,))
        interval = self.flow.heartbeat_interval
        if before is not None and beat.emitted_at - before > _GAP_SHARE * interval:
            self._missing += round((beat.emitted_at - before) / interval) - 1

    def state(self, at: float) -> HeartbeatState:
        newest = max(self._newest.values(), default=None)
        if newest is not None and not self.flow.emit_heartbeats:
            # Those that still arrive, of whatever emitter, are as good as any.
            newest = newest if at - newest <= DEFAULT_HEARTBEAT_AGE else None
        return HeartbeatState(
            present=newest is not None,
            newest_at=newest,
            age_seconds=None if newest is None else at - newest,
            received_total=self._received,
            missing_total=self._missing,
        )

    def latency(self) -> LatencyHistogram:
        """Latencies of the heartbeats whose arrival was observed."""
        return self._latencies.read()
