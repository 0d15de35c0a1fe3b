"""What OpenAPI's document says of the answers of a route; `examples` makes those it names."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from mm2slo_report.web.problems import MEDIA as PROBLEM

if TYPE_CHECKING:
    from collections.abc import Collection

EXAMPLE: Final = "x-mm2slo-example"
"""Where the document is to show an example, by its name."""
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
_WORDS: Final = {
    HTTPStatus.UNAUTHORIZED: "A token is needed.",
    HTTPStatus.FORBIDDEN: "The token may not write.",
    HTTPStatus.NOT_FOUND: "There is none of that name; `near` are those that were likely meant.",
    HTTPStatus.NOT_ACCEPTABLE: "There is no such form.",
    HTTPStatus.CONFLICT: "It is so already.",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is too large.",
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is no JSON.",
    HTTPStatus.MISDIRECTED_REQUEST: "The service is not known by that name.",
    HTTPStatus.UNPROCESSABLE_ENTITY: "A parameter cannot be taken; `accepted` are examples.",
    HTTPStatus.TOO_MANY_REQUESTS: "Too much was asked for; see Retry-After.",
    HTTPStatus.BAD_GATEWAY: "The source of the figures refused, or answered nonsense.",
    HTTPStatus.SERVICE_UNAVAILABLE: "Something that is needed is not there.",
    HTTPStatus.GATEWAY_TIMEOUT: "The source of the figures did not answer in time.",
}
_ALWAYS: Final = (
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


def described(
    example: str,
    media: str = _JSON,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    others: Collection[HTTPStatus] = (),
) -> dict[int | str, dict[str, Any]]:
    """The answers of a route, for FastAPI: the one named by *example*, and problems."""
    content: dict[str, Any] = {EXAMPLE: example}
    if media == _YAML:
        # The example is its text; the schema is of what the text says.
        content["schema"] = {"type": "object"}
    return _answers(status, {media: content}, others)


def described_text(media: str, example: str | None = None) -> dict[int | str, dict[str, Any]]:
    """The answers of a route that gives text: a page, metrics."""
    content: dict[str, Any] = {"schema": {"type": "string"}}
    if example is not None:
        content["example"] = example
    return _answers(HTTPStatus.OK, {media: content}, ())


def described_report(example: str) -> dict[int | str, dict[str, Any]]:
    """The answers of a report in several forms."""
    found = described(example, others=(HTTPStatus.NOT_ACCEPTABLE,))
    content = found[HTTPStatus.OK.value]["content"]
    for media in ("text/csv", "text/markdown", "text/html"):
        content[media] = {"schema": {"type": "string"}}
    return found


def _answers(
    status: HTTPStatus, content: dict[str, Any], others: Collection[HTTPStatus]
) -> dict[int | str, dict[str, Any]]:
    return {
        status.value: {"description": "The answer.", "content": content},
        **({304: {"description": "As the client has it."}} if status is HTTPStatus.OK else {}),
        **{each.value: _problem(each) for each in sorted({*_ALWAYS, *others})},
    }


def _problem(status: HTTPStatus) -> dict[str, Any]:
    return {"description": _WORDS[status], "content": {PROBLEM: {EXAMPLE: PROBLEM_EXAMPLE}}}
