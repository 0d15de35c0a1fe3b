"""What the page shows beside a report: flows, groups, audits and latencies, as frozen values.

None is "not known", never zero. Times are epoch ms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowView:
    """How a flow is right now, as its exporter says."""

    flow: Flow
    state: str | None = None
    """running, idle, stopped or unknown; None: the exporter does not say."""
    lag_records: float | None = None
    lag_seconds: float | None = None
    headroom_seconds: float | None = None
    """Until retention removes what is not replicated yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Whether a consumer group would resume correctly on the target right now."""

    flow: Flow
    group: str
    ready: bool | None
    reasons: tuple[str, ...] = ()
    checkpoint_lag: float | None = None
    redelivery_lower: float | None = None
    redelivery_upper: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceView:
    """Where one anomaly is; never what the record says."""

    verdict: str
    flow: Flow
    topic: str
    """On the target."""
    side: str
    partition: int
    offset: int
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """One run of an audit. `state` is running, finished or failed."""

    id: str
    flows: tuple[Flow, ...]
    start: int
    end: int
    state: str
    verdict: str = ""
    complete_up_to: int | None = None
    sample_rate: float = 1.0
    counts: Mapping[str, int]
    """Judged records by verdict."""
    faults: int = 0
    problems: tuple[str, ...] = ()
    """Topics that could not be audited, and why."""
    evidence: tuple[EvidenceView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileView:
    """A percentile of a latency, in seconds, known to lie in [lower, upper]."""

    q: float
    lower: float | None
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyView:
    """The latency of a flow's records. `origin` tells where from, as "audit 2026-07-01"."""

    flow: Flow
    origin: str
    records: int
    percentiles: tuple[PercentileView, ...]
