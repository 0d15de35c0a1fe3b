"""The result of an audit as a document: `/audits` of the report service, and `--report FILE.json`.

Both have these models, so a field has one name and one unit; the report file adds what is not
stored (`mm2slo_audit.report.report_file`). Times are RFC 3339 in UTC. Null means unknown or not
applicable, never zero.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Self

from pydantic import AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from mm2slo_core.audit.audit_scope import NotAuditedReason
from mm2slo_core.audit.unit_outcome import (
    FAULTS,
    PERCENTILES,
    LatencyBracket,
    LatencyCells,
    Verdict,
    latency_percentile,
    percentile_name,
)
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.reporting.report_entry import utc_text
from mm2slo_core.topology import Flow
from mm2slo_store.audit_rows import Run, RunState, StoredEvidence, StoredUnit


class AuditModel(BaseModel):
    """A part of the document, made from a dictionary or an object with the same attributes."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        validate_by_name=True,
        json_schema_serialization_defaults_required=True,
    )


def _time_text(at: int | str | None) -> str | None:
    return utc_text(at) if isinstance(at, int) else at


Instant = Annotated[
    str, BeforeValidator(_time_text), Field(json_schema_extra={"format": "date-time"})
]
"""From epoch ms."""

MaybeInstant = Annotated[str | None, BeforeValidator(_time_text)]


class AuditWindow(AuditModel):
    start: Instant
    end: Instant


class RunLinks(AuditModel):
    self: str
    evidence: str


class RunSummary(AuditModel):
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
    def of(cls, run: Run, **more: Any) -> Self:
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


class SourceTopic(AuditModel):
    flow: Annotated[str, Field(validation_alias=AliasPath("flow", "label"))]
    topic: Annotated[
        str | None,
        Field(validation_alias="source_topic", description="Null if it was not audited."),
    ]


class NotAuditedCause(AuditModel):
    reason: NotAuditedReason
    detail: str


class KeyAffinity(AuditModel):
    seen: Annotated[int, Field(validation_alias="keys")]
    split: Annotated[int, Field(validation_alias="keys_split")]
    disordered: Annotated[int, Field(validation_alias="keys_disordered")]


class PercentileBounds(AuditModel):
    lower: float | None
    upper: float


class RateBounds(AuditModel):
    """A confidence interval of a rate over all records."""

    name: str
    lower_ratio: Annotated[float, Field(validation_alias="lower")]
    upper_ratio: Annotated[float, Field(validation_alias="upper")]
    sentence: str


class AuditedTopic(AuditModel):
    """Counts by verdict, or why the topic was not audited."""

    topic: str
    cluster: str
    sources: tuple[SourceTopic, ...]
    not_audited: NotAuditedCause | None
    counts: dict[Verdict, int]
    faults: int
    keys: KeyAffinity
    end_to_end_latency_seconds: Annotated[
        dict[str, PercentileBounds | None],
        Field(description="By percentile; null with too few records."),
    ]
    bounds: tuple[RateBounds, ...]
    order_judged: bool

    @classmethod
    def of(cls, unit: StoredUnit, sees: Callable[[Flow], bool]) -> Self:
        """A topic, with those of its sources whose flow the caller *sees*.

        Percentiles are widened to hold for all records: whether the run read all is not stored.
        """
        return cls.model_validate(
            {
                "topic": unit.key.target_topic,
                "cluster": unit.key.target_cluster,
                "sources": [each for each in unit.flows if sees(each.flow)],
                "not_audited": unit.not_audited,
                "keys": unit.affinity,
                "end_to_end_latency_seconds": latency_seconds(unit.end_to_end, sampled=True),
                "bounds": unit.bounds,
                "order_judged": unit.order_judged,
                **count_fields(unit.counts),
            }
        )


class AuditDetail(RunSummary):
    topics: tuple[AuditedTopic, ...]


def _hex(value: int | str) -> str:
    """16 hex digits: JavaScript numbers cannot hold 64 bits."""
    return f"{value & (1 << 64) - 1:016x}" if isinstance(value, int) else value


Hash = Annotated[str, BeforeValidator(_hex)]


class EvidenceRecord(AuditModel):
    """Location and hashes of an anomaly; never its payload."""

    verdict: Verdict
    side: Side
    flow: str
    topic: Annotated[str, Field(description="On the target.")]
    partition: int
    offset: int
    timestamp: Annotated[
        MaybeInstant, Field(description="Null if the record has none, or one after 9998.")
    ]
    fingerprint: Hash
    key_hash: Hash | None
    other_partition: int | None
    other_offset: int | None
    block: int | None

    @classmethod
    def of(cls, found: StoredEvidence) -> Self:
        each = found.evidence
        return cls.model_validate(
            {
                **{name: getattr(each, name) for name in _EVIDENCE_FIELDS},
                "flow": found.flow.label,
                "topic": found.target_topic,
                "timestamp": each.time,
            }
        )


_EVIDENCE_FIELDS = EvidenceRecord.model_fields.keys() - {"flow", "topic", "timestamp"}


def count_fields(counts: Mapping[Verdict, int]) -> dict[str, Any]:
    """`counts` with all verdicts, and the number of `faults`."""
    return {
        "counts": {each: counts.get(each, 0) for each in Verdict},
        "faults": sum(counts.get(each, 0) for each in FAULTS),
    }


def latency_seconds(cells: LatencyCells, *, sampled: bool) -> dict[str, Any]:
    """Bounds of the percentiles in seconds; *sampled*: widened to hold for all records."""
    found = {q: latency_percentile(cells, q, sampled=sampled) for q in PERCENTILES}
    return {percentile_name(q): bracket_seconds(bracket) for q, bracket in found.items()}


def bracket_seconds(bracket: LatencyBracket | None) -> dict[str, float | None] | None:
    """The bounds of a latency in seconds."""
    if bracket is None:
        return None
    return {
        "lower": None if bracket.lower is None else bracket.lower / 1000,
        "upper": bracket.upper / 1000,
    }
