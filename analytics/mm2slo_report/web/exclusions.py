"""`/exclusions`: planned maintenance; adding and removing takes a token with the scope write."""

from __future__ import annotations

import json
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import WithJsonSchema

from mm2slo_core.config.nearest import nearest
from mm2slo_core.objectives.exclusion import (
    LONGEST_MS,
    SHORTEST_MS,
    Exclusion,
    ExclusionState,
    clash,
)
from mm2slo_core.objectives.planning import (
    LATEST_MS,
    LONGEST_REASON,
    covered,
    exclusion_document,
    exclusion_id,
)
from mm2slo_report.rendering.figures import utc
from mm2slo_report.web import answers, parameters
from mm2slo_report.web.answers import Body
from mm2slo_report.web.describing import EXCLUSION, EXCLUSIONS, described
from mm2slo_report.web.guard import TOKEN, refuse_writing
from mm2slo_report.web.problems import Problem, refused, unknown
from mm2slo_report.web.service import service_of

if TYPE_CHECKING:
    from mm2slo_report.web.ports import Effects
    from mm2slo_report.web.service import Service
    from mm2slo_report.web.tokens import Token

router = APIRouter(tags=["planned maintenance"])

_MOST_PATTERNS: Final = 100
_LONGEST_PATTERN: Final = 200
_REQUIRED: Final = frozenset({"flows", "from", "to", "reason"})
_FIELDS: Final = _REQUIRED | {"silence"}
_FORM: Final = '{"flows": ["us->eu"], "from": TIME, "to": TIME, "reason": TEXT, "silence": true}'
_REFUSALS: Final = (
    HTTPStatus.FORBIDDEN,
    HTTPStatus.CONFLICT,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
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
                            "minItems": 1, "maxItems": _MOST_PATTERNS,
                        },
                        "from": {"type": "string", "format": "date-time"},
                        "to": {"type": "string", "format": "date-time"},
                        "reason": {"type": "string", "maxLength": LONGEST_REASON, "minLength": 1},
                        "silence": {
                            "type": "boolean",
                            "description": "Whether Alertmanager is to be quiet about the flows; "
                            "as alerting.maintenance.silence says by default.",
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


@router.get("/exclusions", summary="Planned maintenance", responses=described(EXCLUSIONS))
def exclusions(
    request: Request,
    flow: Annotated[str | None, Query(description="Of this flow, as `us->eu`.")] = None,
    state: Annotated[
        list[Annotated[str, WithJsonSchema(parameters.listed(ExclusionState))]],
        Query(description="Where they stand; all by default."),
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """In order of their start. `mark` says where reports and burn rules see different times."""
    service = service_of(request)
    wanted = None if flow is None else parameters.flows("flow", [flow], service.flows)
    states = parameters.words("state", state, ExclusionState)
    now = service.now
    found = service.records.exclusions(flow=wanted[0] if wanted else None)
    chosen = [each for each in found if not states or each.state(now) in states]
    document = {"exclusions": [exclusion_document(each, now, utc) for each in chosen]}
    return answers.respond(request, Body.of(document), answers.ALWAYS_ASK)


@router.post(
    "/exclusions",
    summary="Exclude planned maintenance",
    status_code=HTTPStatus.CREATED,
    responses=described(EXCLUSION, status=HTTPStatus.CREATED, others=_REFUSALS),
    openapi_extra=_BODY,
)
async def add(request: Request) -> Response:
    """Reports leave it out at once. `effects` says what became of burn rules and silences.

    Where `alerting.maintenance.rules_file` is set, the rule file is written, and Prometheus reads
    it if `alerting.links.prometheus` is set; else `mm2slo exclude write` does that elsewhere.
    """
    token: Token | None = request.scope[TOKEN]
    refuse_writing(token)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != answers.JSON:
        raise Problem(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media", f"expected a body of {answers.JSON}"
        )
    content = await request.body()
    who = token.name if token else ""
    return await run_in_threadpool(_add, service_of(request), content, who)


@router.delete(
    "/exclusions/{exclusion}",
    summary="Remove planned maintenance, or end it",
    responses=described(EXCLUSION, others=(HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT)),
)
def remove(request: Request, exclusion: Annotated[str, Path(max_length=200)]) -> Response:
    """One that is running ends now; one that has ended is counted again, and marked."""
    token: Token | None = request.scope[TOKEN]
    refuse_writing(token)
    service = service_of(request)
    known = {each.id: each for each in service.records.exclusions()}
    found = known.get(exclusion)
    if found is None:
        close = nearest(exclusion, known)
        raise unknown("exclusion", exclusion, (close,) if close else ())
    if found.removed_at is not None:
        raise Problem(HTTPStatus.CONFLICT, "removed", f"{exclusion!r} was removed before")
    now = service.now
    with service.changing:
        removed = service.records.remove_exclusion(exclusion, who=token.name if token else "")
        service.forget()
        effects = service.maintenance.removed(removed, now)
    return answers.respond(request, _told(removed, now, effects), answers.ALWAYS_ASK)


def _add(service: Service, content: bytes, who: str) -> Response:
    now = service.now
    given = _object(content)
    new = _read(service, given, who, now)
    silence = _silence(service, given, new, now)
    # Of two that ask at once, the second one sees the first.
    with service.changing:
        found = clash(new, service.records.exclusions(), service.flows)
        if found is not None:
            former, flow = found
            raise Problem(
                HTTPStatus.CONFLICT,
                "excluded",
                f"a part of that time is excluded for {flow.label} already, by {former.id}",
                existing=former.id,
            )
        service.records.add_exclusion(new)
        service.forget()
        new, effects = service.maintenance.added(new, now, silence=silence)
    body = _told(new, now, effects)
    headers = {"Location": f"/exclusions/{new.id}", "Cache-Control": "no-store"}
    return Response(
        body.content, status_code=HTTPStatus.CREATED, media_type=answers.JSON, headers=headers
    )


def _told(exclusion: Exclusion, now: int, effects: Effects) -> Body:
    return Body.of(changed_document(exclusion, now, effects))


def changed_document(exclusion: Exclusion, now: int, effects: Effects) -> dict[str, Any]:
    """Planned maintenance that has just changed, and what became of it outside of reports."""
    told = {"done": list(effects.done), "problems": list(effects.problems)}
    return {**exclusion_document(exclusion, now, utc), "effects": told}


def _read(service: Service, given: dict[str, Any], who: str, now: int) -> Exclusion:
    start, end = (parameters.instant(name, _text(given, name)) for name in ("from", "to"))
    if start >= LATEST_MS:
        raise refused("from", "planned maintenance starts before the year 9999")
    if not SHORTEST_MS <= end - start <= LONGEST_MS:
        raise refused("to", "planned maintenance lasts a minute to 7 days")
    reason = " ".join(_text(given, "reason").split())
    if not 0 < len(reason) <= LONGEST_REASON or not reason.isprintable():
        raise refused("reason", f"expected up to {LONGEST_REASON} characters on one line")
    return Exclusion(
        id=exclusion_id(start, secrets.token_hex(3)),
        flows=_patterns(service, given),
        start=start,
        end=end,
        reason=reason,
        who=who,
        added_at=now,
    )


def _silence(service: Service, given: dict[str, Any], new: Exclusion, now: int) -> bool | None:
    asked = given.get("silence")
    if asked is not None and not isinstance(asked, bool):
        raise refused("silence", "silence is neither true nor false", _FORM)
    reason = service.maintenance.no_silence(new, now, asked=asked)
    if reason:
        raise refused("silence", f"a silence {reason}", "false")
    return asked


def _object(content: bytes) -> dict[str, Any]:
    try:
        given = json.loads(content)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not _REQUIRED <= set(given) <= _FIELDS:
        raise refused("body", "expected a JSON object with flows, from, to and reason", _FORM)
    return given


def _text(given: dict[str, Any], name: str) -> str:
    value = given[name]
    if not isinstance(value, str):
        raise refused(name, f"{name} is no text", _FORM)
    return value


def _patterns(service: Service, given: dict[str, Any]) -> tuple[str, ...]:
    value = given["flows"]
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_PATTERNS:
        raise refused("flows", "flows is no list of flows", _FORM)
    for each in value:
        readable = isinstance(each, str) and each.isprintable() and len(each) <= _LONGEST_PATTERN
        if not readable or not covered((each,), service.flows):
            labels = [flow.label for flow in service.flows]
            raise refused("flows", "one of flows matches no flow here", *labels[:20], "us->*", "*")
    return tuple(dict.fromkeys(value))
