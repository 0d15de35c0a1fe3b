"""Flows, groups, audits and latencies shown on the status page.

None means unknown, never zero. Times are epoch ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow
    from mm2slo_store.audit_rows import StoredEvidence


@dataclass(frozen=True, slots=True)
class ThroughputView:
    """Records per second over the last *seconds*."""

    seconds: float
    source: float | None
    replicated: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowView:
    """Current state of a flow, from its exporter."""

    flow: Flow
    state: str | None = None
    """running, idle, stopped or unknown; None if not reported."""
    lag_records: float | None = None
    lag_seconds: float | None = None
    headroom_seconds: float | None = None
    """Time until retention removes unreplicated records."""
    unreplicated_records: float | None = None
    """Missing on the target if the source never came back, as of its last reading."""
    unreplicated_seconds: float | None = None
    unreplicated_age: float | None = None
    """Seconds since that reading."""
    throughput: ThroughputView | None = None


@dataclass(frozen=True, slots=True)
class LagView:
    """Records that a consumer group has not consumed on a cluster, and the age of the oldest."""

    records: float | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Current failover readiness of a consumer group, and its lag on both clusters."""

    flow: Flow
    group: str
    ready: bool | None
    reasons: tuple[str, ...] = ()
    checkpoint_lag: float | None = None
    redelivery_lower: float | None = None
    redelivery_upper: float | None = None
    skipped_lower: float | None = None
    skipped_upper: float | None = None
    """None if the group would skip no record."""
    commits_age: float | None = None
    """Seconds since the group's committed offsets on the source were read."""
    unreplicated_records: float | None = None
    unreplicated_seconds: float | None = None
    source_lag: LagView = LagView()
    target_lag: LagView = LagView()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """An audit run; `state` is running, finished or failed."""

    id: str
    flows: tuple[Flow, ...]
    start: int
    end: int
    state: str
    verdict: str = ""
    complete_up_to: int | None = None
    sample_rate: float = 1.0
    counts: Mapping[str, int]
    """Records by verdict."""
    faults: int = 0
    problems: tuple[str, ...] = ()
    """Topics that were not audited, with reasons."""
    evidence: tuple[StoredEvidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileView:
    """A percentile of a latency, in seconds, known to lie in [lower, upper]."""

    q: float
    lower: float | None
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyView:
    """Record latency of a flow; `origin` names its source, such as "audit 2026-07-01"."""

    flow: Flow
    origin: str
    records: int
    percentiles: tuple[PercentileView, ...]
