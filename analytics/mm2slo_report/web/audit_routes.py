"""`/audits`: audit runs, their topics and their evidence, paginated."""

import re
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field, WithJsonSchema

from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_core.reporting.report_entry import Instant
from mm2slo_report.rendering.report_models import ResponseModel
from mm2slo_report.web import http_responses, request_checks
from mm2slo_report.web.http_responses import (
    ResponseBody,
    describe_responses,
    invalid_parameter,
    not_found,
)
from mm2slo_report.web.report_service import ReportService, service_of
from mm2slo_store.audit_document import AuditDetail, AuditedTopic, EvidenceRecord, RunSummary
from mm2slo_store.audit_rows import EvidencePlace, Run, RunPlace

router = APIRouter(tags=["audits"])
LIMIT: Final = 100
MAX_LIMIT: Final = 1_000

_SUGGESTION_RUNS: Final = 500
"""Newest runs that are searched for a suggestion."""
_PLACE_IN_RUN: Final = re.compile(r"([0-9]{1,9})/([0-9]{1,9})")
"""Unit and number of an anomaly; longer numbers do not fit their columns."""
RunId = Annotated[str, Path(description="Run id.", max_length=200)]
PageSize = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Page size.")]
CursorText = Annotated[str | None, Query(description="`next` of the previous page.")]


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
    only = request_checks.parse_flow(flow, service.flows)
    query = {"flow": [] if only is None else [only.label]}
    place = None if cursor is None else _run_place(request_checks.decode_cursor(cursor, query))
    found = service.records.runs(flow=only, after=place, limit=limit + 1)
    page = found[:limit]
    following = None
    if len(found) > limit:
        last = page[-1].header
        following = request_checks.encode_cursor(
            request_checks.PageCursor(last.id, last.started_at), query
        )
    answer = AuditRuns(
        as_of=service.now // 1000 * 1000,
        total=sum(service.records.count_runs(flow=only).values()),
        runs=tuple(map(RunSummary.of, page)),
        next=following,
    )
    return http_responses.respond(request, ResponseBody.json(answer), http_responses.REVALIDATE)


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
    after = None
    if cursor is not None:
        after = _evidence_place(request_checks.decode_cursor(cursor, query), found.header.id)
    selected = service.records.evidence(
        run_id=found.header.id, verdicts=verdicts, after=after, limit=limit + 1
    )
    page = selected[:limit]
    following = None
    if len(selected) > limit:
        last = page[-1].place
        following = request_checks.encode_cursor(
            request_checks.PageCursor(f"{last.unit}/{last.number}", last.window_start), query
        )
    answer = EvidencePage(
        run=found.header.id,
        evidence=tuple(map(EvidenceRecord.of, page)),
        next=following,
    )
    return http_responses.respond(request, ResponseBody.json(answer), http_responses.REVALIDATE)


def _find_run(service: ReportService, run_id: str) -> Run:
    # Databases reject some characters.
    for run in service.records.runs_by_id([run_id] if run_id.isprintable() else []):
        return run
    known = service.records.runs(limit=_SUGGESTION_RUNS)
    raise not_found("audit run", run_id, [each.header.id for each in known])


def _run_place(cursor: request_checks.PageCursor) -> RunPlace:
    # Runs of earlier pages may be superseded meanwhile; the position stays valid.
    return RunPlace(cursor.as_of, cursor.after)


def _evidence_place(cursor: request_checks.PageCursor, run_id: str) -> EvidencePlace:
    # Topics of earlier pages may be superseded meanwhile; the position stays valid.
    found = _PLACE_IN_RUN.fullmatch(cursor.after)
    if found is None:
        raise invalid_parameter(
            "cursor",
            "invalid cursor; expected the value of `next` from the previous page of this run",
        )
    return EvidencePlace(cursor.as_of, run_id, int(found[1]), int(found[2]))
