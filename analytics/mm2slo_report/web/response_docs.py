"""Responses of routes in the OpenAPI document beside their models: problems and other formats."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from mm2slo_report.web.problem_details import MEDIA, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROBLEM: Final = {"$ref": f"#/components/schemas/{Problem.__name__}"}
_TEXT: Final = {"type": "string"}
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
                "content": {MEDIA: {"schema": _PROBLEM}},
            }
            for status, text in described.items()
        },
    }


def text_formats(*media: str) -> dict[str, Mapping[str, str]]:
    return dict.fromkeys(media, _TEXT)
