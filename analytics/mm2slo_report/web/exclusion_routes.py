"""`/exclusions`: planned maintenance; changes need a token with the scope write."""

from __future__ import annotations

import json
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import WithJsonSchema

from mm2slo_core.config.suggestion import suggest
from mm2slo_core.objectives.exclusion import (
    MAX_EXCLUSION_MS,
    MIN_EXCLUSION_MS,
    Exclusion,
    ExclusionState,
    find_overlap,
)
from mm2slo_core.objectives.exclusion_document import (
    MAX_REASON_LENGTH,
    MAX_TIMESTAMP_MS,
    exclusion_id,
    matching_flows,
)
from mm2slo_report.web import http_responses, query_parameters
from mm2slo_report.web.exclusion_models import ChangedExclusion, ExclusionList
from mm2slo_report.web.exclusion_models import Exclusion as ExclusionModel
from mm2slo_report.web.http_responses import Body
from mm2slo_report.web.problem_details import ProblemError, invalid_parameter, not_found
from mm2slo_report.web.report_service import service_of
from mm2slo_report.web.request_guard import TOKEN, require_write_scope
from mm2slo_report.web.response_docs import describe_responses

if TYPE_CHECKING:
    from mm2slo_report.web.report_service import ReportService
    from mm2slo_report.web.service_ports import Effects
    from mm2slo_report.web.tokens import Token

router = APIRouter(tags=["planned maintenance"])

_MAX_PATTERNS: Final = 100
_MAX_PATTERN_LENGTH: Final = 200
_REQUIRED: Final = frozenset({"flows", "from", "to", "reason"})
_FIELDS: Final = _REQUIRED | {"silence"}
_BODY_FORMAT: Final = (
    '{"flows": ["us->eu"], "from": TIME, "to": TIME, "reason": TEXT, "silence": true}'
)
_REFUSALS: Final = (
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
_BODY: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": sorted(_REQUIRED),
                    "additionalProperties": False,
                    "properties": {
                        "flows": {
                            "type": "array", "items": {"type": "string"},
                            "minItems": 1, "maxItems": _MAX_PATTERNS,
                        },
                        "from": {"type": "string", "format": "date-time"},
                        "to": {"type": "string", "format": "date-time"},
                        "reason": {
                            "type": "string", "maxLength": MAX_REASON_LENGTH, "minLength": 1,
                        },
                        "silence": {
                            "type": "boolean",
                            "description": "Whether to create a silence in Alertmanager; "
                            "default: alerting.maintenance.silence.",
                        },
                    },
                },
                "example": {
                    "flows": ["us->eu"], "from": "2026-07-14T02:00:00Z",
                    "to": "2026-07-14T04:00:00Z", "reason": "upgrade of the target cluster",
                },
            }
        },
    }
}  # fmt: skip


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
        list[Annotated[str, WithJsonSchema(query_parameters.enum_schema(ExclusionState))]],
        Query(description="Only these states; default: all."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """Sorted by start. `mark` is set where reports and burn rules exclude different times."""
    service = service_of(request)
    selected = None if flow is None else query_parameters.parse_flows("flow", [flow], service.flows)
    states = query_parameters.parse_enum("state", state, ExclusionState)
    now = service.now
    found = service.records.exclusions(flow=selected[0] if selected else None)
    chosen = [each for each in found if not states or each.state(now) in states]
    answer = ExclusionList(exclusions=tuple(ExclusionModel.of(each, now) for each in chosen))
    return http_responses.respond(request, Body.json(answer), http_responses.REVALIDATE)


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
    token: Token | None = request.scope[TOKEN]
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
    token: Token | None = request.scope[TOKEN]
    require_write_scope(token)
    service = service_of(request)
    known = {each.id: each for each in service.records.exclusions()}
    found = known.get(exclusion)
    if found is None:
        close = suggest(exclusion, known)
        raise not_found("exclusion", exclusion, (close,) if close else ())
    if found.removed_at is not None:
        raise ProblemError(
            HTTPStatus.CONFLICT, "already-removed", f"{exclusion!r} is already removed"
        )
    now = service.now
    with service.maintenance_lock:
        removed = service.records.remove_exclusion(exclusion, who=token.name if token else "")
        service.clear_caches()
        effects = service.maintenance.apply_removed(removed, now)
    return http_responses.respond(
        request, _changed_body(removed, now, effects), http_responses.REVALIDATE
    )


def _add(service: ReportService, content: bytes, who: str) -> Response:
    now = service.now
    document = _parse_object(content)
    new = _parse_exclusion(service, document, who, now)
    silence = _requested_silence(service, document, new, now)
    # Of two concurrent requests, the second one sees the first.
    with service.maintenance_lock:
        found = find_overlap(new, service.records.exclusions(), service.flows)
        if found is not None:
            existing, flow = found
            raise ProblemError(
                HTTPStatus.CONFLICT,
                "already-excluded",
                f"overlaps exclusion {existing.id} of {flow.label}",
                existing=existing.id,
            )
        service.records.add_exclusion(new)
        service.clear_caches()
        new, effects = service.maintenance.apply_added(new, now, silence=silence)
    body = _changed_body(new, now, effects)
    headers = {"Location": f"/exclusions/{new.id}", "Cache-Control": "no-store"}
    return Response(
        body.content,
        status_code=HTTPStatus.CREATED,
        media_type=http_responses.JSON,
        headers=headers,
    )


def _changed_body(exclusion: Exclusion, now: int, effects: Effects) -> Body:
    return Body.json(ChangedExclusion.of(exclusion, now, effects=effects))


def _parse_exclusion(
    service: ReportService, document: dict[str, Any], who: str, now: int
) -> Exclusion:
    start, end = (
        query_parameters.parse_instant(name, _text(document, name)) for name in ("from", "to")
    )
    if start >= MAX_TIMESTAMP_MS:
        raise invalid_parameter("from", "invalid start; expected a time before the year 9999")
    if not MIN_EXCLUSION_MS <= end - start <= MAX_EXCLUSION_MS:
        raise invalid_parameter("to", "invalid length; expected a minute to 7 days")
    reason = " ".join(_text(document, "reason").split())
    if not 0 < len(reason) <= MAX_REASON_LENGTH or not reason.isprintable():
        raise invalid_parameter(
            "reason", f"expected up to {MAX_REASON_LENGTH} characters on one line"
        )
    return Exclusion(
        id=exclusion_id(start, secrets.token_hex(3)),
        flows=_patterns(service, document),
        start=start,
        end=end,
        reason=reason,
        who=who,
        added_at=now,
    )


def _requested_silence(
    service: ReportService, document: dict[str, Any], new: Exclusion, now: int
) -> bool | None:
    requested = document.get("silence")
    if requested is not None and not isinstance(requested, bool):
        raise invalid_parameter("silence", "invalid silence; expected true or false", _BODY_FORMAT)
    reason = service.maintenance.silence_problem(new, now, requested=requested)
    if reason:
        raise invalid_parameter("silence", f"a silence {reason}", "false")
    return requested


def _parse_object(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not _REQUIRED <= set(document) <= _FIELDS:
        raise invalid_parameter(
            "body", "expected a JSON object with flows, from, to and reason", _BODY_FORMAT
        )
    return document


def _text(document: dict[str, Any], name: str) -> str:
    value = document[name]
    if not isinstance(value, str):
        raise invalid_parameter(name, f"invalid {name}; expected a string", _BODY_FORMAT)
    return value


def _patterns(service: ReportService, document: dict[str, Any]) -> tuple[str, ...]:
    value = document["flows"]
    if not isinstance(value, list) or not 0 < len(value) <= _MAX_PATTERNS:
        raise invalid_parameter(
            "flows", "invalid flows; expected a list of flow patterns", _BODY_FORMAT
        )
    for each in value:
        is_text = isinstance(each, str) and each.isprintable() and len(each) <= _MAX_PATTERN_LENGTH
        if not is_text or not matching_flows((each,), service.flows):
            labels = [flow.label for flow in service.flows]
            raise invalid_parameter(
                "flows", "a pattern of flows matches no flow", *labels[:20], "us->*", "*"
            )
    patterns = tuple(dict.fromkeys(value))
    # A pattern would also exclude flows that the token is not for.
    if service.is_scoped:
        return tuple(flow.label for flow in matching_flows(patterns, service.flows))
    return patterns
