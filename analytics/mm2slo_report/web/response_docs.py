"""Responses of routes in the OpenAPI document; `openapi_examples` builds the examples."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from mm2slo_report.web.problem_details import MEDIA as PROBLEM

if TYPE_CHECKING:
    from collections.abc import Collection

EXAMPLE: Final = "x-mm2slo-example"
"""Key that names the example to insert."""
LIST: Final = "list"
ONE: Final = "one"
HISTORY: Final = "history"
ALERTS: Final = "alerts"
SPEC: Final = "spec"
REPORT: Final = "report"
FLOWS: Final = "flows"
FLOW: Final = "flow"
READINESS: Final = "readiness"
AUDITS: Final = "audits"
AUDIT: Final = "audit"
EVIDENCE: Final = "evidence"
EXCLUSIONS: Final = "exclusions"
EXCLUSION: Final = "exclusion"
HEALTH: Final = "health"
PROBLEM_EXAMPLE: Final = "problem"
_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_DESCRIPTIONS: Final = {
    HTTPStatus.UNAUTHORIZED: "A token is required.",
    HTTPStatus.FORBIDDEN: "The token lacks the scope write.",
    HTTPStatus.NOT_FOUND: "Unknown name; `near` lists similar ones.",
    HTTPStatus.NOT_ACCEPTABLE: "No supported format matches Accept.",
    HTTPStatus.CONFLICT: "Conflicts with the current state.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is not JSON.",
    HTTPStatus.MISDIRECTED_REQUEST: "Unknown host name.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Invalid parameter; `accepted` lists valid examples.",
    HTTPStatus.TOO_MANY_REQUESTS: "Rate limit exceeded; see Retry-After.",
    HTTPStatus.BAD_GATEWAY: "The SLI source returned an error or an unexpected response.",
    HTTPStatus.SERVICE_UNAVAILABLE: "A required component is unavailable.",
    HTTPStatus.GATEWAY_TIMEOUT: "The SLI source timed out.",
}
_COMMON_PROBLEMS: Final = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.MISDIRECTED_REQUEST,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)


def describe_responses(
    example: str,
    media: str = _JSON,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    others: Collection[HTTPStatus] = (),
) -> dict[int | str, dict[str, Any]]:
    """Responses of a route for FastAPI: the named *example*, and problems."""
    content: dict[str, Any] = {EXAMPLE: example}
    if media == _YAML:
        # The example is YAML text; the schema describes its content.
        content["schema"] = {"type": "object"}
    return _responses(status, {media: content}, others)


def describe_text_responses(
    media: str, example: str | None = None
) -> dict[int | str, dict[str, Any]]:
    """Responses of a route that returns text."""
    content: dict[str, Any] = {"schema": {"type": "string"}}
    if example is not None:
        content["example"] = example
    return _responses(HTTPStatus.OK, {media: content}, ())


def describe_report_responses(example: str) -> dict[int | str, dict[str, Any]]:
    """Responses of a report in several formats."""
    responses = describe_responses(example, others=(HTTPStatus.NOT_ACCEPTABLE,))
    content = responses[HTTPStatus.OK.value]["content"]
    for media in ("text/csv", "text/markdown", "text/html"):
        content[media] = {"schema": {"type": "string"}}
    return responses


def describe_page_responses(example: str) -> dict[int | str, dict[str, Any]]:
    """Responses of a route that returns JSON to clients and a page to browsers."""
    responses = describe_responses(example)
    responses[HTTPStatus.OK.value]["content"]["text/html"] = {"schema": {"type": "string"}}
    return responses


def _responses(
    status: HTTPStatus, content: dict[str, Any], others: Collection[HTTPStatus]
) -> dict[int | str, dict[str, Any]]:
    return {
        status.value: {"description": "Success.", "content": content},
        **({304: {"description": "Not modified."}} if status is HTTPStatus.OK else {}),
        **{each.value: _problem(each) for each in sorted({*_COMMON_PROBLEMS, *others})},
    }


def _problem(status: HTTPStatus) -> dict[str, Any]:
    return {"description": _DESCRIPTIONS[status], "content": {PROBLEM: {EXAMPLE: PROBLEM_EXAMPLE}}}
