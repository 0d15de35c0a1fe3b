"""Flows, groups, audits and latencies as the status page shows them.

None means unknown, never zero. Times are epoch ms. Audits are made from rows of the results store.
Groups are parts of `/flows/{slug}/readiness` as they are.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Annotated

from pydantic import Field

from mm2slo_core.audit.unit_outcome import FAULTS, Verdict, count_latencies
from mm2slo_core.catalogue.service_metrics import LatencyMeasure
from mm2slo_core.reporting.report_entry import Count, Figure, json_part
from mm2slo_core.topology import Flow
from mm2slo_report.flow_audit_figures import LatencyEstimate, flow_latency, percentiles
from mm2slo_report.rendering.report_text import moment_text
from mm2slo_store.audit_rows import Run, StoredEvidence, StoredUnit


@dataclass(frozen=True, slots=True)
class ThroughputView:
    """Records per second over the last *seconds*."""

    seconds: float
    source: float | None
    replicated: float | None


@json_part
@dataclass(frozen=True, slots=True)
class RecordLag:
    """Records that are missing on a cluster or not consumed there."""

    records: Count = None
    seconds: Annotated[Figure, Field(description="Age of the oldest record.")] = None


@json_part
@dataclass(frozen=True, slots=True)
class Unreplicated(RecordLag):
    """What would be missing on the target if the source never came back."""

    age_seconds: Annotated[Figure, Field(description="Since the source was read.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatusView:
    """Current state of a flow, from its exporter."""

    flow: Flow
    state: str | None = None
    """running, idle, stopped or unknown; None if not reported."""
    lag_records: float | None = None
    lag_seconds: float | None = None
    headroom_seconds: float | None = None
    """Time until retention removes unreplicated records."""
    unreplicated: Unreplicated = Unreplicated()
    throughput: ThroughputView | None = None


@json_part
@dataclass(frozen=True, slots=True)
class RecordBounds:
    """A number of records, known to lie in [lower, upper]."""

    lower: Count = None
    upper: Count = None


@json_part
@dataclass(frozen=True, slots=True)
class GroupLag:
    """What a consumer group has not consumed on each cluster."""

    source: RecordLag = RecordLag()
    target: RecordLag = RecordLag()


@json_part
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """Failover readiness of a consumer group, if it failed over now, and its lag."""

    flow: Annotated[Flow, Field(exclude=True)]
    group: str
    ready: bool | None
    reasons: tuple[str, ...] = ()
    checkpoint_lag_records: Count = None
    redelivery_records: RecordBounds = RecordBounds()
    skipped_records: Annotated[
        RecordBounds,
        Field(description="Records that it would never read; null if it would skip none."),
    ] = RecordBounds()
    commits_age_seconds: Figure = None
    """Since its committed offsets on the source were read."""
    unreplicated: RecordLag = RecordLag()
    lag: GroupLag = GroupLag()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditView:
    """An audit run."""

    run: Run
    counts: Mapping[str, int]
    """Records by verdict."""
    faults: int = 0
    problems: tuple[str, ...] = ()
    """Topics that were not audited, with reasons."""
    evidence: tuple[StoredEvidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyView:
    """Record latency of a flow; `origin` names its source, such as "audit 2026-07-01"."""

    flow: Flow
    origin: str
    records: int
    percentiles: Mapping[float, LatencyEstimate]
    """By quantile."""


def audit_view(
    run: Run, units: Iterable[StoredUnit], evidence: Iterable[StoredEvidence] = ()
) -> AuditView:
    """The view of a run with its *units* and the *evidence* to show."""
    counts: Counter[Verdict] = Counter()
    problems = []
    for unit in units:
        counts.update(unit.counts)
        if unit.not_audited is not None:
            reason = f"{unit.not_audited.reason.value}: {unit.not_audited.detail}"
            problems.append(f"{unit.key.target_topic} ({reason.removesuffix(': ')})")
    return AuditView(
        run=run,
        counts={verdict.value: number for verdict, number in counts.items() if number},
        faults=sum(counts[each] for each in FAULTS),
        problems=tuple(problems),
        evidence=tuple(evidence),
    )


def latency_view(run: Run, flow: Flow, units: Sequence[StoredUnit]) -> LatencyView | None:
    """End-to-end latency of *flow* from the units of *run* that only it feeds; None without any.

    A topic fed by several flows has one histogram for all of them.
    """
    cells = flow_latency(flow, units, LatencyMeasure.END_TO_END)
    found = percentiles(cells, run)
    if not found:
        return None
    start, end = (moment_text(at, UTC) for at in (run.header.window.start, run.header.window.end))
    return LatencyView(
        flow=flow,
        origin=f"audit of {start} to {end}",
        records=count_latencies(cells),
        percentiles=found,
    )
