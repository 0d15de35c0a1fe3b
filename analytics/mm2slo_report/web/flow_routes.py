"""`/flows`: flows with the status of their objectives, and failover readiness."""

import logging
from collections.abc import Collection
from http import HTTPStatus
from typing import Annotated, Self

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import Field

from mm2slo_core.cutover.cutover_checks import CutoverPhase, GateQuestion
from mm2slo_core.cutover.cutover_evidence import DEFAULT_FREEZE, CutoverTerms, not_read
from mm2slo_core.cutover.cutover_gate import (
    CutoverDecision,
    check_waivers,
    decide,
    parse_waiver,
)
from mm2slo_core.objectives.error_budget import Status
from mm2slo_core.quantity_text import duration_label, parse_duration
from mm2slo_core.reporting import report_entry
from mm2slo_core.reporting.report_entry import Count, Figure, Instant, count_by_status, headline
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError
from mm2slo_report.access_tokens import AccessToken
from mm2slo_report.flow_audit_figures import AuditFigures
from mm2slo_report.rendering.page_views import (
    FlowStatusView,
    GroupView,
    ThroughputView,
    Unreplicated,
)
from mm2slo_report.rendering.report_models import (
    FlowNames,
    Headline,
    ObjectiveEntry,
    ResponseModel,
)
from mm2slo_report.sli_source import SliSourceError
from mm2slo_report.web import http_responses
from mm2slo_report.web.http_responses import (
    ProblemError,
    ResponseBody,
    describe_responses,
    invalid_parameter,
    not_found,
)
from mm2slo_report.web.objective_routes import At
from mm2slo_report.web.report_service import ReportService, respond_cached, service_of
from mm2slo_report.web.request_checks import TOKEN, require_write_scope

logger = logging.getLogger(__name__)
router = APIRouter(tags=["flows"])
Slug = Annotated[str, Path(description="Slug of the flow, such as `us-to-eu`.", max_length=200)]


class FlowSummary(FlowNames):
    status: Annotated[Status, Field(description="The worst of its objectives.")]
    headline: Headline
    objectives: Annotated[tuple[str, ...], Field(description="Ids.")]

    @classmethod
    def of(cls, flow: Flow, entries: Collection[report_entry.Entry]) -> Self:
        counts = count_by_status(entries)
        return cls(
            **FlowNames.model_validate(flow).model_dump(),
            status=next((each for each in counts if counts[each]), Status.NO_DATA),
            headline=Headline(**headline(entries)),
            objectives=tuple(each.id for each in entries),
        )


class FlowList(ResponseModel):
    as_of: Instant
    flows: tuple[FlowSummary, ...]


@router.get("/flows", summary="All flows", response_model=FlowList, responses=describe_responses())
def flows(request: Request, at: At = None) -> Response:
    """Each flow with its worst status and the number of objectives by status."""
    service = service_of(request)
    as_of = service.instant(at)

    def make() -> ResponseBody:
        report = service.report(as_of)
        found = [
            FlowSummary.of(flow, [each for each in report.entries if each.objective.flow == flow])
            for flow in service.flows
        ]
        return ResponseBody.json(FlowList(as_of=as_of, flows=tuple(found)))

    return respond_cached(
        request, (as_of,), make, service.freshness(at, as_of), charged=at is not None
    )


class FlowThroughput(ResponseModel):
    """Between two readings of the exporter, which are a minute apart or more."""

    between_readings_seconds: Figure
    source_records_per_second: Figure
    replicated_records_per_second: Figure
    source_bytes_per_second: Annotated[
        Figure, Field(description="Uncompressed: records per second times the record size.")
    ]
    replicated_bytes_per_second: Figure
    record_size_bytes: Annotated[
        Figure,
        Field(description="Mean size of key, value and headers in the flow's newest audit."),
    ]
    record_size_age_seconds: Annotated[
        Figure, Field(description="Time since the end of the audited window.")
    ]

    @classmethod
    def of(cls, view: ThroughputView, audit: AuditFigures | None, now: int) -> Self:
        size = None if audit is None else audit.record_size
        age = None if audit is None else (now - audit.run.header.window.end) / 1000

        def in_bytes(records: float | None) -> float | None:
            return None if records is None or size is None else records * size

        return cls(
            between_readings_seconds=view.seconds,
            source_records_per_second=view.source,
            replicated_records_per_second=view.replicated,
            source_bytes_per_second=in_bytes(view.source),
            replicated_bytes_per_second=in_bytes(view.replicated),
            record_size_bytes=size,
            record_size_age_seconds=None if size is None else age,
        )


class CurrentState(ResponseModel):
    """As last reported by the exporter."""

    state: str | None
    lag_records: Count
    lag_seconds: Figure
    headroom_seconds: Annotated[
        Figure, Field(description="Time until retention removes unreplicated records.")
    ]
    throughput: Annotated[FlowThroughput | None, Field(description="Null before a second reading.")]


class FlowDetail(ResponseModel):
    as_of: Instant
    source: str
    flow: FlowSummary
    now: Annotated[
        CurrentState | None,
        Field(description="Null as of a past instant, or if no exporter reports it."),
    ]
    entries: tuple[ObjectiveEntry, ...]
    warnings: tuple[str, ...]


@router.get(
    "/flows/{slug}", summary="One flow", response_model=FlowDetail, responses=describe_responses()
)
def one(request: Request, slug: Slug, at: At = None) -> Response:
    """Its objectives as in the list, and its current state if an exporter reports it."""
    service = service_of(request)
    flow = _find_flow(service, slug)
    as_of = service.instant(at)
    is_past = as_of < service.instant(None)

    def make() -> ResponseBody:
        report = service.report(as_of)
        entries = [each for each in report.entries if each.objective.flow == flow]
        references = service.settings.references
        return ResponseBody.json(
            FlowDetail(
                as_of=as_of,
                source=report.source,
                flow=FlowSummary.of(flow, entries),
                now=None if is_past else _current_state(service, flow),
                entries=tuple(ObjectiveEntry.of(each, references) for each in entries),
                warnings=report.warnings,
            )
        )

    return respond_cached(
        request, (as_of,), make, service.freshness(at, as_of), charged=at is not None
    )


class FailoverReadiness(ResponseModel):
    """Groups that are not ready come first."""

    flow: str
    slug: str
    as_of: Instant
    groups: int
    ready: int
    unreplicated: Unreplicated
    readiness: tuple[GroupView, ...]


@router.get(
    "/flows/{slug}/readiness",
    summary="Failover readiness of consumer groups",
    response_model=FailoverReadiness,
    responses=describe_responses(),
)
def readiness(request: Request, slug: Slug) -> Response:
    """As last evaluated by the exporter; groups that are not ready come first."""
    service = service_of(request)
    flow = _find_flow(service, slug)
    found = [each for each in service.group_views() if each.flow == flow]
    view = next(
        (each for each in service.flow_views() if each.flow == flow), FlowStatusView(flow=flow)
    )
    ordered = sorted(found, key=lambda each: (each.ready is not False, each.ready, each.group))
    answer = FailoverReadiness(
        flow=flow.label,
        slug=flow.slug,
        as_of=service.now // 1000 * 1000,
        groups=len(ordered),
        ready=sum(each.ready is True for each in ordered),
        unreplicated=view.unreplicated,
        readiness=tuple(ordered),
    )
    return http_responses.respond(request, ResponseBody.json(answer), http_responses.CURRENT)


@router.get(
    "/flows/{slug}/cutover",
    summary="Whether consumers and producers can move to the target now",
    response_model=CutoverDecision,
    responses=describe_responses(HTTPStatus.FORBIDDEN),
)
def cutover(  # noqa: PLR0917 - FastAPI passes them by name
    request: Request,
    slug: Slug,
    phase: Annotated[
        CutoverPhase,
        Query(description="`ready`: under traffic; `go`: after all producers have stopped."),
    ],
    freeze: Annotated[
        str, Query(description="How long no record may be written, such as `120s`.", max_length=20)
    ] = duration_label(DEFAULT_FREEZE),
    accept_redelivery: Annotated[
        int, Query(ge=0, description="Records that a group may read again.")
    ] = 0,
    accept: Annotated[
        list[str],
        Query(description="`CHECK=REASON` or `CHECK/ITEM=REASON`."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Judged by what an exporter has read; never waits. The first call starts the watch.

    What is not known yet is `unknown`, and no go: call again. What weakens the gate (`accept`,
    `accept_redelivery`, a shorter `freeze`) needs a token with the scope `write`.
    """
    service = service_of(request)
    flow = _find_flow(service, slug)
    try:
        seconds = parse_duration(freeze)
    except ValueError as error:
        raise invalid_parameter("freeze", f"{freeze!r} {error}", "120s") from None
    if accept or accept_redelivery or seconds < DEFAULT_FREEZE:
        token: AccessToken | None = request.scope[TOKEN]
        require_write_scope(token)
        # The record of who has accepted what.
        logger.info(
            "cutover of %s: %s accepts a freeze of %g s, a redelivery of %d records; %s",
            flow.label, token.name if token else "", seconds, accept_redelivery, "; ".join(accept),
        )  # fmt: skip
    try:
        terms = CutoverTerms(seconds, accept_redelivery, tuple(map(parse_waiver, accept)))
        check_waivers(phase, terms)
    except UserError as error:
        raise invalid_parameter("accept", str(error), "audit=REASON") from None

    def make() -> ResponseBody:
        question = service.cutover_question(flow, phase, terms)
        if question is None:
            question = GateQuestion(phase, not_read(flow, service.now / 1000), terms)
        return ResponseBody(decide(question).as_json(), http_responses.JSON)

    key = (phase, terms, service.now // 1000)
    return respond_cached(request, key, make, http_responses.CURRENT, charged=True)


def _find_flow(service: ReportService, slug: str) -> Flow:
    known = {name: flow for flow in service.flows for name in (flow.slug, flow.label)}
    flow = known.get(slug)
    if flow is None:
        raise not_found("flow", slug, [each.slug for each in service.flows])
    return flow


def _current_state(service: ReportService, flow: Flow) -> CurrentState | None:
    """The current state; None if no exporter reports the flow."""
    try:
        views = service.flow_views()
    except (ProblemError, SliSourceError):
        return None
    view = next((each for each in views if each.flow == flow), None)
    if view is None:
        return None
    throughput = None
    if view.throughput is not None:
        audit = service.audits.figures_of([flow]).get(flow)
        throughput = FlowThroughput.of(view.throughput, audit, service.now)
    return CurrentState(
        state=view.state,
        lag_records=view.lag_records,
        lag_seconds=view.lag_seconds,
        headroom_seconds=view.headroom_seconds,
        throughput=throughput,
    )
