"""Audit runs, topics and evidence as typed responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AliasPath, BeforeValidator, Field

from mm2slo_core.audit.audit_scope import NotAuditedReason
from mm2slo_core.audit.latency_histogram import PERCENTILES, percentile, percentile_name
from mm2slo_core.audit.record_verdict import FAULTS, Verdict
from mm2slo_core.timeline_record import Side
from mm2slo_report.rendering.response_model import Instant, MaybeInstant, ResponseModel
from mm2slo_store.audit_rows import RunState

if TYPE_CHECKING:
    from collections.abc import Callable

    from mm2slo_core.audit.unit_outcome import LatencyCells
    from mm2slo_core.topology import Flow
    from mm2slo_store import audit_rows


def _hex(value: int | str) -> str:
    """16 hex digits: JavaScript numbers cannot hold 64 bits."""
    return f"{value & (1 << 64) - 1:016x}" if isinstance(value, int) else value


Hash = Annotated[str, BeforeValidator(_hex)]


class AuditWindow(ResponseModel):
    start: Instant
    end: Instant


class RunLinks(ResponseModel):
    self: str
    evidence: str


class AuditRun(ResponseModel):
    id: str
    state: RunState
    flows: tuple[str, ...]
    window: AuditWindow
    started_at: Instant
    finished_at: MaybeInstant
    exit_code: int | None
    verdict: Annotated[str | None, Field(description="Of a failed run: why it failed.")]
    complete_up_to: MaybeInstant
    sampled_ratio: float
    bytes_read: Annotated[
        int | None,
        Field(description="Bytes of keys and values read; estimated in a sample."),
    ]
    superseded_topics: int
    versions: dict[str, str]
    links: RunLinks

    @classmethod
    def of(cls, run: audit_rows.Run, **more: Any) -> Self:
        """*more* are fields of a subclass."""
        header = run.header
        return cls.model_validate(
            {
                "id": header.id,
                "state": run.state,
                "flows": [flow.label for flow in header.flows],
                "window": header.window,
                "started_at": header.started_at,
                "finished_at": run.finished_at,
                "exit_code": run.exit_code,
                "verdict": run.verdict_line,
                "complete_up_to": run.complete_up_to,
                "sampled_ratio": header.sample_rate,
                "bytes_read": run.bytes_read,
                "superseded_topics": run.superseded_units,
                "versions": dict(header.versions),
                "links": {
                    "self": f"/audits/{header.id}",
                    "evidence": f"/audits/{header.id}/evidence",
                },
                **more,
            }
        )


class AuditRuns(ResponseModel):
    """Newest first."""

    as_of: Instant
    total: Annotated[int, Field(description="Of all pages.")]
    runs: tuple[AuditRun, ...]
    next: Annotated[str | None, Field(description="Cursor of the next page.")]


class SourceTopic(ResponseModel):
    flow: Annotated[str, Field(validation_alias=AliasPath("flow", "label"))]
    topic: Annotated[
        str | None,
        Field(validation_alias="source_topic", description="Null if it was not audited."),
    ]


class NotAudited(ResponseModel):
    reason: NotAuditedReason
    detail: str


class Keys(ResponseModel):
    seen: Annotated[int, Field(validation_alias="keys")]
    split: Annotated[int, Field(validation_alias="keys_split")]
    disordered: Annotated[int, Field(validation_alias="keys_disordered")]


class LatencyBounds(ResponseModel):
    lower: float | None
    upper: float


class RateBounds(ResponseModel):
    """A confidence interval of a rate over all records."""

    name: str
    lower_ratio: Annotated[float, Field(validation_alias="lower")]
    upper_ratio: Annotated[float, Field(validation_alias="upper")]
    sentence: str


class AuditedTopic(ResponseModel):
    """Counts by verdict, or why the topic was not audited."""

    topic: str
    cluster: str
    sources: tuple[SourceTopic, ...]
    not_audited: NotAudited | None
    counts: dict[Verdict, int]
    faults: int
    keys: Keys
    end_to_end_latency_seconds: Annotated[
        dict[str, LatencyBounds | None],
        Field(description="By percentile; null with too few records."),
    ]
    bounds: tuple[RateBounds, ...]
    order_judged: bool

    @classmethod
    def of(cls, unit: audit_rows.StoredUnit, sees: Callable[[Flow], bool]) -> Self:
        """A topic, with those of its sources whose flow the caller *sees*."""
        return cls.model_validate(
            {
                "topic": unit.key.target_topic,
                "cluster": unit.key.target_cluster,
                "sources": [each for each in unit.flows if sees(each.flow)],
                "not_audited": unit.not_audited,
                "counts": {each: unit.counts.get(each, 0) for each in Verdict},
                "faults": sum(unit.counts.get(each, 0) for each in FAULTS),
                "keys": unit.affinity,
                "end_to_end_latency_seconds": _latency(unit.end_to_end),
                "bounds": unit.bounds,
                "order_judged": unit.order_judged,
            }
        )


class AuditDetail(AuditRun):
    topics: tuple[AuditedTopic, ...]


class EvidenceRecord(ResponseModel):
    """Location and hashes of an anomaly; never its payload."""

    verdict: Verdict
    side: Side
    flow: str
    topic: Annotated[str, Field(description="On the target.")]
    partition: int
    offset: int
    timestamp: Annotated[MaybeInstant, Field(description="Null if the record has none.")]
    fingerprint: Hash
    key_hash: Hash | None
    other_partition: int | None
    other_offset: int | None
    block: int | None

    @classmethod
    def of(cls, found: audit_rows.StoredEvidence) -> Self:
        each = found.evidence
        return cls.model_validate(
            {
                **{name: getattr(each, name) for name in _EVIDENCE_FIELDS},
                "flow": found.flow.label,
                "topic": found.target_topic,
                "timestamp": each.timestamp if each.timestamp >= 0 else None,
            }
        )


_EVIDENCE_FIELDS = EvidenceRecord.model_fields.keys() - {"flow", "topic", "timestamp"}


class EvidencePage(ResponseModel):
    run: str
    evidence: tuple[EvidenceRecord, ...]
    next: Annotated[str | None, Field(description="Cursor of the next page.")]


def _latency(cells: LatencyCells) -> dict[str, Any]:
    """Bounds of the percentiles in seconds."""
    found: dict[str, Any] = {}
    for q in PERCENTILES:
        bracket = percentile(cells, q, sampled=True)
        found[percentile_name(q)] = bracket and {
            "lower": None if bracket.lower is None else bracket.lower / 1000,
            "upper": bracket.upper / 1000,
        }
    return found
