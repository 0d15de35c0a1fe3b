"""Responses with cache headers (RFC 9110, 9111), and errors as problem documents (RFC 9457).

The last part describes them for the OpenAPI document: problems and formats beside the models.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import Request, Response
from pydantic import BaseModel, Field

from mm2slo_core.config.config_document import suggest
from mm2slo_report.rendering.report_models import ResponseModel

JSON: Final = "application/json"
YAML: Final = "application/yaml"
_NOT_MODIFIED: Final = 304


@dataclass(frozen=True)
class ResponseBody:
    """A response body; identical for identical requests."""

    content: bytes
    media: str
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def json(cls, answer: BaseModel) -> ResponseBody:
        return cls(answer.model_dump_json(by_alias=True).encode(), JSON)

    @classmethod
    def text(cls, text: str, media: str, headers: Mapping[str, str] | None = None) -> ResponseBody:
        """UTF-8 text of the type *media*."""
        return cls(text.encode(), f"{media}; charset=utf-8", tuple((headers or {}).items()))

    @cached_property
    def etag(self) -> str:
        """A strong validator."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:24]}"'


# Values of Cache-Control; private, because responses may require a token.
CURRENT: Final = "private, max-age=15"
"""For the current minute."""

PAST: Final = "private, max-age=3600"
"""For the past. Limited, because maintenance may be added and audits may run later."""
REVALIDATE: Final = "no-cache"


def respond(request: Request, body: ResponseBody, cache: str, *, vary: str = "") -> Response:
    """*body*, or 304 if the client has it already."""
    headers = {
        "ETag": body.etag,
        "Cache-Control": cache,
        # A cache must not answer one token with what another one may see (RFC 9111, 4.1).
        "Vary": ", ".join(filter(None, ("Authorization", vary))),
        # Also with 304, whose headers replace those of the stored page (RFC 9111, 3.2): without its
        # own policy, a page gets that of a response without content.
        **dict(body.headers),
    }
    if _matches_etag(request.headers.get("if-none-match"), body.etag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return Response(
        body.content,
        media_type=None,
        headers={**headers, "Content-Type": body.media},
    )


def _matches_etag(header: str | None, etag: str) -> bool:
    """Weak comparison (RFC 9110, 13.1.2)."""
    if header is None:
        return False
    known = [each.strip().removeprefix("W/") for each in header.split(",")]
    return etag in known or known == ["*"]


class ProblemResponse(Response):
    """A problem document, never cached."""

    def __init__(self, problem: ProblemError) -> None:
        super().__init__(
            problem.body(),
            status_code=problem.status,
            media_type=PROBLEM_JSON,
            headers={"Cache-Control": "no-store", **problem.headers},
        )


PROBLEM_JSON: Final = "application/problem+json"
_PROBLEM_TYPE: Final = "urn:mm2slo:problem:"


class ProblemDocument(ResponseModel):
    type: Annotated[str, Field(pattern=f"^{_PROBLEM_TYPE}")]
    title: str
    status: int
    detail: str
    near: Annotated[tuple[str, ...], Field(description="Similar names.")] = ()
    parameter: str | None = None
    accepted: Annotated[tuple[str, ...], Field(description="Valid examples.")] = ()
    existing: Annotated[str | None, Field(description="Id of what it conflicts with.")] = None


class ProblemError(Exception):
    """A failed request; *detail* is a sentence for people, without secrets.

    *kind* is the last part of the problem type. *more* are extension members, such as `near`
    (similar ids) and `accepted` (valid values).
    """

    def __init__(
        self,
        status: HTTPStatus,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more

    def document(self) -> dict[str, Any]:
        return {
            "type": f"{_PROBLEM_TYPE}{self.kind}",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            **{name: value for name, value in self.more.items() if value},
        }

    def body(self) -> bytes:
        # Request text may hold lone surrogates, which UTF-8 cannot encode; ASCII escapes can.
        return json.dumps(self.document(), indent=2).encode() + b"\n"


def not_found(what: str, wanted: str, known: Iterable[str]) -> ProblemError:
    """404: name *wanted* of a *what* that is not among the *known* ones."""
    close = suggest(wanted, known)
    hint = f"; did you mean {close!r}?" if close else ""
    return ProblemError(
        HTTPStatus.NOT_FOUND,
        "not-found",
        f"unknown {what} {wanted!r}{hint}",
        near=[close] if close else [],
    )


def invalid_parameter(parameter: str, detail: str, *accepted: str) -> ProblemError:
    """422: invalid value of *parameter*; *accepted* are examples of valid ones."""
    return ProblemError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid-parameter",
        detail,
        parameter=parameter,
        accepted=list(accepted),
    )


_PROBLEM_SCHEMA: Final = {"$ref": f"#/components/schemas/{ProblemDocument.__name__}"}
_TEXT_SCHEMA: Final = {"type": "string"}

_PROBLEMS: Final = {
    HTTPStatus.UNAUTHORIZED: "A token is required.",
    HTTPStatus.NOT_FOUND: "Unknown name; `near` lists similar ones.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.MISDIRECTED_REQUEST: "Unknown host name.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Invalid parameter; `accepted` lists valid examples.",
    HTTPStatus.TOO_MANY_REQUESTS: "Rate limit exceeded; see Retry-After.",
    HTTPStatus.BAD_GATEWAY: "The SLI source returned an error or an unexpected response.",
    HTTPStatus.SERVICE_UNAVAILABLE: "A required component is unavailable.",
    HTTPStatus.GATEWAY_TIMEOUT: "The SLI source timed out.",
}

_MORE_PROBLEMS: Final = {
    HTTPStatus.FORBIDDEN: "The token lacks the scope write, or is not for all affected flows.",
    HTTPStatus.NOT_ACCEPTABLE: "No supported format matches Accept.",
    HTTPStatus.CONFLICT: "Conflicts with the current state.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not JSON.",
}


def describe_responses(
    *problems: HTTPStatus,
    status: HTTPStatus = HTTPStatus.OK,
    formats: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[int | str, dict[str, Any]]:
    """Problems of any route and *problems*, and the success *status* with other *formats*."""
    content = {media: {"schema": dict(schema)} for media, schema in (formats or {}).items()}
    described = {**_PROBLEMS, **{each: _MORE_PROBLEMS[each] for each in problems}}
    return {
        status.value: {"description": "Success.", "content": content},
        **({304: {"description": "Not modified."}} if status is HTTPStatus.OK else {}),
        **{
            status.value: {
                "description": text,
                "content": {PROBLEM_JSON: {"schema": _PROBLEM_SCHEMA}},
            }
            for status, text in described.items()
        },
    }


def text_formats(*media: str) -> dict[str, Mapping[str, str]]:
    return dict.fromkeys(media, _TEXT_SCHEMA)
