"""`/audits`: audit runs, their topics and their evidence, paginated."""

from collections.abc import Callable
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AliasPath, BeforeValidator, Field, WithJsonSchema

from mm2slo_core.audit.audit_scope import NotAuditedReason
from mm2slo_core.audit.unit_outcome import (
    FAULTS,
    PERCENTILES,
    LatencyCells,
    Verdict,
    latency_percentile,
    percentile_name,
)
from mm2slo_core.config.config_document import suggest
from mm2slo_core.records.timeline_record import Side
from mm2slo_core.reporting.json_values import Instant, MaybeInstant
from mm2slo_core.topology import Flow
from mm2slo_report.rendering.report_models import ResponseModel
from mm2slo_report.web import http_responses, request_checks
from mm2slo_report.web.http_responses import (
    ResponseBody,
    describe_responses,
    invalid_parameter,
    not_found,
)
from mm2slo_report.web.report_service import ReportService, service_of
from mm2slo_store import audit_rows
from mm2slo_store.audit_rows import Run, RunPlace, RunState

router = APIRouter(tags=["audits"])
LIMIT: Final = 100
MAX_LIMIT: Final = 1_000

_SUGGESTION_RUNS: Final = 500
"""Newest runs that are searched for a suggestion."""
RunId = Annotated[str, Path(description="Run id.", max_length=200)]
PageSize = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Page size.")]
CursorText = Annotated[str | None, Query(description="`next` of the previous page.")]


class AuditWindow(ResponseModel):
    start: Instant
    end: Instant


class RunLinks(ResponseModel):
    self: str
    evidence: str


class RunSummary(ResponseModel):
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
    runs: tuple[RunSummary, ...]
    next: Annotated[str | None, Field(description="Cursor of the next page.")]


@router.get(
    "/audits",
    summary="Audit runs, newest first",
    response_model=AuditRuns,
    responses=describe_responses(),
)
def audits(
    request: Request,
    flow: Annotated[str | None, Query(description="Only this flow, such as `us->eu`.")] = None,
    limit: PageSize = LIMIT,
    cursor: CursorText = None,
) -> Response:
    """A finished run has its verdict, a failed run its reason."""
    service = service_of(request)
    selected = None if flow is None else request_checks.parse_flows("flow", [flow], service.flows)
    query = {"flow": [each.label for each in selected or ()]}
    only = selected[0] if selected else None
    place = None if cursor is None else _run_place(request_checks.decode_cursor(cursor, query))
    found = service.records.runs(flow=only, after=place, limit=limit + 1)
    page = found[:limit]
    following = None
    if len(found) > limit:
        last = page[-1].header
        following = request_checks.encode_cursor(
            request_checks.PageCursor(last.id, last.started_at), query
        )
    answer = AuditRuns.model_validate(
        {
            "as_of": service.now // 1000 * 1000,
            "total": sum(service.records.count_runs(flow=only).values()),
            "runs": [RunSummary.of(each) for each in page],
            "next": following,
        }
    )
    return http_responses.respond(request, ResponseBody.json(answer), http_responses.REVALIDATE)


class SourceTopic(ResponseModel):
    flow: Annotated[str, Field(validation_alias=AliasPath("flow", "label"))]
    topic: Annotated[
        str | None,
        Field(validation_alias="source_topic", description="Null if it was not audited."),
    ]


class NotAuditedCause(ResponseModel):
    reason: NotAuditedReason
    detail: str


class KeyAffinity(ResponseModel):
    seen: Annotated[int, Field(validation_alias="keys")]
    split: Annotated[int, Field(validation_alias="keys_split")]
    disordered: Annotated[int, Field(validation_alias="keys_disordered")]


class PercentileBounds(ResponseModel):
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


class AuditDetail(RunSummary):
    topics: tuple[AuditedTopic, ...]


@router.get(
    "/audits/{run}",
    summary="One audit run",
    response_model=AuditDetail,
    responses=describe_responses(),
)
def one(request: Request, run: RunId) -> Response:
    """Counts by verdict and confidence bounds of each topic, or why it was not audited."""
    service = service_of(request)
    found = _find_run(service, run)
    units = service.records.units(run_id=found.header.id)
    topics = [AuditedTopic.of(each, service.sees) for each in units]
    answer = AuditDetail.of(found, topics=topics)
    return http_responses.respond(request, ResponseBody.json(answer), http_responses.REVALIDATE)


def _hex(value: int | str) -> str:
    """16 hex digits: JavaScript numbers cannot hold 64 bits."""
    return f"{value & (1 << 64) - 1:016x}" if isinstance(value, int) else value


Hash = Annotated[str, BeforeValidator(_hex)]


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


class EvidencePage(ResponseModel):
    run: str
    evidence: tuple[EvidenceRecord, ...]
    next: Annotated[str | None, Field(description="Cursor of the next page.")]


@router.get(
    "/audits/{run}/evidence",
    summary="Evidence of an audit run",
    response_model=EvidencePage,
    responses=describe_responses(),
)
def evidence(
    request: Request,
    run: RunId,
    verdict: Annotated[
        list[Annotated[str, WithJsonSchema(request_checks.enum_schema(Verdict))]],
        Query(description="Only these verdicts."),
    ] = [],  # noqa: B006 - FastAPI copies it
    limit: PageSize = LIMIT,
    cursor: CursorText = None,
) -> Response:
    """Verdict, location and hashes of each anomaly; never its payload."""
    service = service_of(request)
    found = _find_run(service, run)
    verdicts = request_checks.parse_enum("verdict", verdict, Verdict)
    query = {"run": run, "verdict": sorted(verdicts)}
    first = 0
    if cursor is not None:
        after = request_checks.decode_cursor(cursor, query).after
        # A published run never changes, so a number identifies the position.
        if not (after.isascii() and after.isdigit() and len(after) <= 7):
            raise invalid_parameter(
                "cursor",
                "invalid cursor; expected the value of `next` from the previous page of this run",
            )
        first = int(after)
    selected = service.records.evidence(
        run_id=found.header.id, verdicts=verdicts, start=first, limit=limit + 1
    )
    page = selected[:limit]
    further = len(selected) > limit
    following = request_checks.encode_cursor(request_checks.PageCursor(str(first + limit)), query)
    answer = EvidencePage(
        run=found.header.id,
        evidence=tuple(map(EvidenceRecord.of, page)),
        next=following if further else None,
    )
    return http_responses.respond(request, ResponseBody.json(answer), http_responses.REVALIDATE)


def _find_run(service: ReportService, run_id: str) -> Run:
    # Databases reject some characters.
    for run in service.records.runs_by_id([run_id] if run_id.isprintable() else []):
        return run
    known = service.records.runs(limit=_SUGGESTION_RUNS)
    close = suggest(run_id, [each.header.id for each in known])
    raise not_found("audit run", run_id, (close,) if close else ())


def _run_place(cursor: request_checks.PageCursor) -> RunPlace:
    # Runs of earlier pages may be superseded meanwhile; the position stays valid.
    return RunPlace(cursor.as_of, cursor.after)


_EVIDENCE_FIELDS = EvidenceRecord.model_fields.keys() - {"flow", "topic", "timestamp"}


def _latency(cells: LatencyCells) -> dict[str, Any]:
    """Bounds of the percentiles in seconds."""
    found: dict[str, Any] = {}
    for q in PERCENTILES:
        bracket = latency_percentile(cells, q, sampled=True)
        found[percentile_name(q)] = bracket and {
            "lower": None if bracket.lower is None else bracket.lower / 1000,
            "upper": bracket.upper / 1000,
        }
    return found
