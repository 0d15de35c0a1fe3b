"""`/audits`: what audits found, run by run, and the evidence, by pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import WithJsonSchema

from mm2slo_core.audit.verdict import Verdict
from mm2slo_core.config.nearest import nearest
from mm2slo_report.rendering.figures import utc
from mm2slo_report.web import answers, paging, parameters
from mm2slo_report.web.answers import Body
from mm2slo_report.web.audit_documents import evidence_document, run_document, unit_document
from mm2slo_report.web.describing import AUDIT, AUDITS, EVIDENCE, described
from mm2slo_report.web.problems import refused, unknown
from mm2slo_report.web.service import service_of
from mm2slo_store.rows import RunPlace

if TYPE_CHECKING:
    from mm2slo_report.web.service import Service
    from mm2slo_store.rows import Run

router = APIRouter(tags=["audits"])

LIMIT: Final = 100
LARGEST_LIMIT: Final = 1_000
_MOST_EVIDENCE: Final = 1_000_000
_NEAR_AMONG: Final = 500
"""Newest runs that a misspelt id may have meant."""

Id = Annotated[str, Path(description="A run's id.", max_length=200)]
Limit = Annotated[int, Query(ge=1, le=LARGEST_LIMIT, description="Items of a page.")]
Cursor = Annotated[str | None, Query(description="`next` of the page before.")]


@router.get("/audits", summary="Runs of audits, the newest first", responses=described(AUDITS))
def audits(
    request: Request,
    flow: Annotated[str | None, Query(description="Of this flow, as `us->eu`.")] = None,
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Finished ones with their verdict, failed ones with the reason."""
    service = service_of(request)
    wanted = None if flow is None else parameters.flows("flow", [flow], service.flows)
    question = {"flow": [each.label for each in wanted or ()]}
    only = wanted[0] if wanted else None
    place = None if cursor is None else _place(paging.read(cursor, question))
    found = service.records.runs(flow=only, after=place, limit=limit + 1)
    page = found[:limit]
    following = None
    if len(found) > limit:
        last = page[-1].header
        following = paging.written(paging.Cursor(last.id, last.started_at), question)
    document = {
        "as_of": utc(service.now // 1000 * 1000),
        "total": sum(service.records.count_runs(flow=only).values()),
        "runs": [run_document(each) for each in page],
        "next": following,
    }
    return answers.respond(request, Body.of(document), answers.ALWAYS_ASK)


@router.get("/audits/{run}", summary="One run", responses=described(AUDIT))
def one(request: Request, run: Id) -> Response:
    """Each topic with its counts by verdict and what they are worth, or why it was not audited."""
    service = service_of(request)
    found = _run(service, run)
    units = service.records.units(run_id=found.header.id)
    document = {**run_document(found), "topics": [unit_document(each) for each in units]}
    return answers.respond(request, Body.of(document), answers.ALWAYS_ASK)


@router.get("/audits/{run}/evidence", summary="Anomalies of a run", responses=described(EVIDENCE))
def evidence(
    request: Request,
    run: Id,
    verdict: Annotated[
        list[Annotated[str, WithJsonSchema(parameters.listed(Verdict))]],
        Query(description="Of these alone."),
    ] = [],  # noqa: B006 - FastAPI copies it
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Where each anomaly is and what it is; never what a record says."""
    service = service_of(request)
    found = _run(service, run)
    verdicts = parameters.words("verdict", verdict, Verdict)
    question = {"run": run, "verdict": sorted(verdicts)}
    first = 0
    if cursor is not None:
        after = paging.read(cursor, question).after
        # What is published of a run never changes, so a number tells the place.
        if not (after.isascii() and after.isdigit() and int(after[:9]) <= _MOST_EVIDENCE):
            raise refused("cursor", "this is no cursor of evidence")
        first = int(after)
    wanted = service.records.evidence(
        run_id=found.header.id, verdicts=verdicts, start=first, limit=limit + 1
    )
    page = wanted[:limit]
    further = len(wanted) > limit
    document = {
        "run": found.header.id,
        "evidence": [evidence_document(each) for each in page],
        "next": paging.written(paging.Cursor(str(first + limit)), question) if further else None,
    }
    return answers.respond(request, Body.of(document), answers.ALWAYS_ASK)


def _run(service: Service, run_id: str) -> Run:
    # No database takes every character.
    for each in service.records.runs_of([run_id] if run_id.isprintable() else []):
        return each
    known = service.records.runs(limit=_NEAR_AMONG)
    close = nearest(run_id, [each.header.id for each in known])
    raise unknown("audit run", run_id, (close,) if close else ())


def _place(cursor: paging.Cursor) -> RunPlace:
    # What came before a page may be replaced meanwhile; the place stays where it was.
    return RunPlace(cursor.as_of, cursor.after)
