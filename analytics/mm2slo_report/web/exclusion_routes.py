"""`/exclusions`: planned maintenance; changes need a token with the scope write."""

import secrets
from http import HTTPStatus
from typing import Annotated, Any, Final, Self

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema

from mm2slo_core.objectives import exclusion
from mm2slo_core.objectives.exclusion import (
    MAX_EXCLUSION_MS,
    MAX_REASON_LENGTH,
    MAX_TIMESTAMP_MS,
    MIN_EXCLUSION_MS,
    Exclusion,
    ExclusionMark,
    ExclusionState,
    exclusion_document,
    exclusion_id,
    matching_flows,
)
from mm2slo_core.reporting.report_entry import Instant, MaybeInstant
from mm2slo_report.access_tokens import AccessToken
from mm2slo_report.rendering.report_models import ResponseModel
from mm2slo_report.web import http_responses, request_checks
from mm2slo_report.web.http_responses import (
    ProblemError,
    ResponseBody,
    describe_responses,
    invalid_parameter,
    not_found,
)
from mm2slo_report.web.report_service import Effects, ReportService, service_of
from mm2slo_report.web.request_checks import TOKEN, require_write_scope
from mm2slo_store.sli_history import AlreadyExcludedError, AlreadyRemovedError

router = APIRouter(tags=["planned maintenance"])

_BODY_FORMAT: Final = (
    '{"flows": ["us->eu"], "from": TIME, "to": TIME, "reason": TEXT, "silence": true}'
)

_VALUE_ERRORS: Final = frozenset(
    {"bool_type", "string_too_long", "string_too_short", "string_type", "too_long", "too_short",
     "tuple_type"}
)  # fmt: skip
"""Errors of the value of a known member."""

_REFUSALS: Final = (
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)


class ExclusionRequest(BaseModel):
    """Planned maintenance to add."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    flows: Annotated[
        tuple[Annotated[str, Field(max_length=200)], ...],
        Field(min_length=1, max_length=100, description="Patterns of labels."),
    ]
    start: Annotated[str, Field(alias="from", json_schema_extra={"format": "date-time"})]
    end: Annotated[str, Field(alias="to", json_schema_extra={"format": "date-time"})]
    reason: Annotated[str, Field(min_length=1, max_length=MAX_REASON_LENGTH)]
    silence: Annotated[
        bool | None,
        Field(
            description="Whether to create a silence in Alertmanager; default: "
            "alerting.maintenance.silence."
        ),
    ] = None


_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": ExclusionRequest.model_json_schema()}},
    }
}


class ExclusionResponse(ResponseModel):
    id: str
    state: ExclusionState
    flows: Annotated[tuple[str, ...], Field(description="Patterns of labels.")]
    start: Annotated[Instant, Field(alias="from")]
    end: Annotated[Instant, Field(alias="to")]
    reason: str
    added_by: str
    added_at: Instant
    removed_by: str | None
    removed_at: MaybeInstant
    mark: Annotated[
        ExclusionMark | None,
        Field(description="Why reports and burn rules exclude different times."),
    ]
    silence: Annotated[str | None, Field(description="Id in Alertmanager.")]

    @classmethod
    def of(cls, found: exclusion.Exclusion, now: int, **more: Any) -> Self:
        """*more* are fields of a subclass."""
        return cls.model_validate({**exclusion_document(found, now, lambda at: at), **more})


class ExclusionList(ResponseModel):
    exclusions: tuple[ExclusionResponse, ...]


@router.get(
    "/exclusions",
    summary="Planned maintenance",
    response_model=ExclusionList,
    responses=describe_responses(),
)
def exclusions(
    request: Request,
    flow: Annotated[str | None, Query(description="Only this flow, such as `us->eu`.")] = None,
    state: Annotated[
        list[Annotated[str, WithJsonSchema(request_checks.enum_schema(ExclusionState))]],
        Query(description="Only these states; default: all."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Sorted by start. `mark` is set where reports and burn rules exclude different times."""
    service = service_of(request)
    selected = request_checks.parse_flow(flow, service.flows)
    states = request_checks.parse_enum("state", state, ExclusionState)
    now = service.now
    found = service.records.exclusions(flow=selected)
    chosen = [each for each in found if not states or each.state(now) in states]
    answer = ExclusionList(exclusions=tuple(ExclusionResponse.of(each, now) for each in chosen))
    return http_responses.respond(request, ResponseBody.json(answer), http_responses.REVALIDATE)


class ExclusionEffects(ResponseModel):
    """Effects outside of reports, one sentence each."""

    done: tuple[str, ...]
    problems: tuple[str, ...]


class ChangedExclusion(ExclusionResponse):
    effects: ExclusionEffects


@router.post(
    "/exclusions",
    summary="Exclude planned maintenance",
    status_code=HTTPStatus.CREATED,
    response_model=ChangedExclusion,
    responses=describe_responses(*_REFUSALS, status=HTTPStatus.CREATED),
    openapi_extra=_BODY,
)
async def add(request: Request) -> Response:
    """Reports exclude it immediately. `effects` reports the changes of burn rules and silences.

    If `alerting.maintenance.rules_file` is set, the rule file is written, and Prometheus reloads it
    if `alerting.links.prometheus` is set; otherwise run `mm2slo exclude write` on its host.
    """
    token: AccessToken | None = request.scope[TOKEN]
    require_write_scope(token)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != http_responses.JSON:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported-media-type",
            f"expected Content-Type {http_responses.JSON}",
        )
    content = await request.body()
    who = token.name if token else ""
    return await run_in_threadpool(_add, service_of(request), content, who)


@router.delete(
    "/exclusions/{exclusion}",
    summary="Remove planned maintenance, or end it",
    response_model=ChangedExclusion,
    responses=describe_responses(HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT),
)
def remove(
    request: Request, exclusion: Annotated[str, Path(description="Exclusion id.", max_length=200)]
) -> Response:
    """Running maintenance ends now; events of past maintenance count again, and it is marked."""
    token: AccessToken | None = request.scope[TOKEN]
    require_write_scope(token)
    service = service_of(request)
    with service.maintenance_lock:
        known = {each.id: each for each in service.records.exclusions()}
        if exclusion not in known:
            raise not_found("exclusion", exclusion, known)
        try:
            removed = service.records.remove_exclusion(exclusion, who=token.name if token else "")
        except AlreadyRemovedError:
            raise ProblemError(
                HTTPStatus.CONFLICT, "already-removed", f"{exclusion!r} is already removed"
            ) from None
        now = service.now  # not earlier: what ended a moment later would still run
        service.clear_caches()
        effects = service.maintenance.apply_removed(removed, now)
    return http_responses.respond(
        request, _changed_body(removed, now, effects), http_responses.REVALIDATE
    )


def _add(service: ReportService, content: bytes, who: str) -> Response:
    now = service.now
    asked = _parse_request(content)
    new = _parse_exclusion(service, asked, who, now)
    problem = service.maintenance.silence_problem(new, now, requested=asked.silence)
    if problem:
        raise invalid_parameter("silence", f"a silence {problem}", "false")
    with service.maintenance_lock:
        try:
            service.records.add_exclusion(new, flows=service.flows)
        except AlreadyExcludedError as error:
            raise ProblemError(
                HTTPStatus.CONFLICT,
                "already-excluded",
                f"overlaps exclusion {error.existing.id} of {error.flow.label}",
                existing=error.existing.id,
            ) from None
        service.clear_caches()
        new, effects = service.maintenance.apply_added(new, now, silence=asked.silence)
    body = _changed_body(new, now, effects)
    headers = {"Location": f"/exclusions/{new.id}", "Cache-Control": "no-store"}
    return Response(
        body.content,
        status_code=HTTPStatus.CREATED,
        media_type=http_responses.JSON,
        headers=headers,
    )


def _changed_body(exclusion: Exclusion, now: int, effects: Effects) -> ResponseBody:
    return ResponseBody.json(ChangedExclusion.of(exclusion, now, effects=effects))


def _parse_exclusion(
    service: ReportService, request: ExclusionRequest, who: str, now: int
) -> Exclusion:
    start = request_checks.parse_instant("from", request.start)
    end = request_checks.parse_instant("to", request.end)
    if start >= MAX_TIMESTAMP_MS:
        raise invalid_parameter("from", "invalid start; expected a time before the year 9999")
    if not MIN_EXCLUSION_MS <= end - start <= MAX_EXCLUSION_MS:
        raise invalid_parameter("to", "invalid length; expected a minute to 7 days")
    reason = " ".join(request.reason.split())
    if not 0 < len(reason) <= MAX_REASON_LENGTH or not reason.isprintable():
        raise invalid_parameter(
            "reason", f"expected up to {MAX_REASON_LENGTH} characters on one line"
        )
    return Exclusion(
        id=exclusion_id(start, secrets.token_hex(3)),
        flows=_patterns(service, request),
        start=start,
        end=end,
        reason=reason,
        who=who,
        added_at=now,
    )


def _parse_request(content: bytes) -> ExclusionRequest:
    try:
        return ExclusionRequest.model_validate_json(content)
    except ValidationError as error:
        found = error.errors()
        if any(each["type"] not in _VALUE_ERRORS or not each["loc"] for each in found):
            raise invalid_parameter(
                "body", "expected a JSON object with flows, from, to and reason", _BODY_FORMAT
            ) from None
        name = str(found[0]["loc"][0])
        raise invalid_parameter(name, f"{name}: {found[0]['msg']}", _BODY_FORMAT) from None


def _patterns(service: ReportService, request: ExclusionRequest) -> tuple[str, ...]:
    for each in request.flows:
        if not each.isprintable() or not matching_flows((each,), service.flows):
            labels = [flow.label for flow in service.flows]
            raise invalid_parameter(
                "flows", "a pattern of flows matches no flow", *labels[:20], "us->*", "*"
            )
    # A pattern would also exclude flows that the token is not for.
    if service.is_scoped:
        return tuple(flow.label for flow in matching_flows(request.flows, service.flows))
    return tuple(dict.fromkeys(request.flows))
