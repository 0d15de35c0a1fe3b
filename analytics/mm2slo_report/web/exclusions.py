"""`/exclusions`: planned maintenance; adding and removing takes a token with the scope write."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool

from mm2slo_core.config.nearest import nearest
from mm2slo_core.objectives.exclusion import (
    LONGEST_MS,
    SHORTEST_MS,
    Exclusion,
    ExclusionState,
    clash,
)
from mm2slo_report.rendering.figures import utc
from mm2slo_report.web import answers, parameters
from mm2slo_report.web.answers import Body
from mm2slo_report.web.describing import EXCLUSION, EXCLUSIONS, described
from mm2slo_report.web.guard import TOKEN, refuse_writing
from mm2slo_report.web.problems import Problem, refused, unknown
from mm2slo_report.web.service import service_of

if TYPE_CHECKING:
    from mm2slo_report.web.service import Service
    from mm2slo_report.web.tokens import Token

router = APIRouter(tags=["planned maintenance"])

_LONGEST_REASON: Final = 200
_MOST_PATTERNS: Final = 100
_FIELDS: Final = ("flows", "from", "to", "reason")
_FORM: Final = '{"flows": ["us->eu"], "from": TIME, "to": TIME, "reason": TEXT}'
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
                    "required": list(_FIELDS),
                    "additionalProperties": False,
                    "properties": {
                        "flows": {
                            "type": "array", "items": {"type": "string"},
                            "minItems": 1, "maxItems": _MOST_PATTERNS,
                        },
                        "from": {"type": "string", "format": "date-time"},
                        "to": {"type": "string", "format": "date-time"},
                        "reason": {"type": "string", "maxLength": _LONGEST_REASON, "minLength": 1},
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
        list[str], Query(description="`planned`, `running`, `past`, `removed`; all by default.")
    ] = [],  # noqa: B006 - FastAPI copies it
) -> Response:
    """In order of their begin. `mark` says where reports and burn rules see different times."""
    service = service_of(request)
    wanted = None if flow is None else parameters.flows("flow", [flow], service.flows)
    states = parameters.words("state", state, ExclusionState)
    now = service.now
    found = service.records.exclusions(flow=wanted[0] if wanted else None)
    chosen = [each for each in found if not states or each.state(now) in states]
    document = {"exclusions": [exclusion_document(each, now) for each in chosen]}
    return answers.respond(request, Body.of(document), answers.ALWAYS_ASK)


@router.post(
    "/exclusions",
    summary="Exclude planned maintenance",
    status_code=HTTPStatus.CREATED,
    responses=described(EXCLUSION, status=HTTPStatus.CREATED, others=_REFUSALS),
    openapi_extra=_BODY,
)
async def add(request: Request) -> Response:
    """Reports leave it out at once. Burn rules learn of it by `mm2slo exclude write`."""
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
    removed = service.records.remove_exclusion(exclusion, who=token.name if token else "")
    service.forget()
    return answers.respond(
        request, Body.of(exclusion_document(removed, service.now)), answers.ALWAYS_ASK
    )


def _add(service: Service, content: bytes, who: str) -> Response:
    new = _read(service, content, who)
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
    body = Body.of(exclusion_document(new, service.now))
    headers = {"Location": f"/exclusions/{new.id}", "Cache-Control": "no-store"}
    return Response(
        body.content, status_code=HTTPStatus.CREATED, media_type=answers.JSON, headers=headers
    )


def _read(service: Service, content: bytes, who: str) -> Exclusion:
    given = _object(content)
    begin, end = (parameters.instant(name, _text(given, name)) for name in ("from", "to"))
    if not SHORTEST_MS <= end - begin <= LONGEST_MS:
        raise refused("to", "planned maintenance lasts a minute to 7 days")
    reason = " ".join(_text(given, "reason").split())
    if not 0 < len(reason) <= _LONGEST_REASON or not reason.isprintable():
        raise refused("reason", f"expected up to {_LONGEST_REASON} characters on one line")
    day = datetime.fromtimestamp(begin / 1000, UTC)
    return Exclusion(
        id=f"{day:%Y%m%d}-{secrets.token_hex(3)}",
        flows=_patterns(service, given),
        begin=begin,
        end=end,
        reason=reason,
        who=who,
        added_at=service.now,
    )


def _object(content: bytes) -> dict[str, Any]:
    try:
        given = json.loads(content)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or set(given) != set(_FIELDS):
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
        probe = isinstance(each, str) and Exclusion(
            id="", flows=(each,), begin=0, end=1, reason="", who="", added_at=0
        )  # so that a pattern means here what it means there
        if not probe or not any(map(probe.covers, service.flows)):
            labels = [flow.label for flow in service.flows]
            raise refused("flows", "one of flows matches no flow here", *labels[:20], "us->*", "*")
    return tuple(dict.fromkeys(value))


def exclusion_document(exclusion: Exclusion, now: int) -> dict[str, Any]:
    """Planned maintenance as it stands at *now*, epoch ms."""
    mark, removed = exclusion.mark, exclusion.removed_at
    return {
        "id": exclusion.id,
        "state": exclusion.state(now).value,
        "flows": list(exclusion.flows),
        "from": utc(exclusion.begin),
        "to": utc(exclusion.end),
        "reason": exclusion.reason,
        "added_by": exclusion.who,
        "added_at": utc(exclusion.added_at),
        "removed_by": exclusion.removed_by,
        "removed_at": None if removed is None else utc(removed),
        "mark": None if mark is None else mark.value,
        "silence": exclusion.silence,
    }
