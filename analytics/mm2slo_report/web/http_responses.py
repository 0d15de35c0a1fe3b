"""Responses with cache headers (RFC 9110, 9111)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from fastapi import Response

from mm2slo_report.web.problem_details import MEDIA as PROBLEM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request

    from mm2slo_report.rendering.response_model import ResponseModel
    from mm2slo_report.web.problem_details import ProblemError

JSON: Final = "application/json"
YAML: Final = "application/yaml"
_NOT_MODIFIED: Final = 304


@dataclass(frozen=True)
class Body:
    """A response body; identical for identical requests."""

    content: bytes
    media: str
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def json(cls, answer: ResponseModel) -> Body:
        return cls(answer.model_dump_json(by_alias=True).encode(), JSON)

    @classmethod
    def text(cls, text: str, media: str, headers: Mapping[str, str] | None = None) -> Body:
        """UTF-8 text of the type *media*."""
        return cls(text.encode(), f"{media}; charset=utf-8", tuple((headers or {}).items()))

    @cached_property
    def etag(self) -> str:
        """A strong validator."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:24]}"'


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long clients may reuse a response."""

    seconds: int

    def header(self) -> str:
        """`Cache-Control`; private, because responses may require a token."""
        return f"private, max-age={self.seconds}" if self.seconds else "no-cache"


CURRENT: Final = Freshness(15)
"""For the current minute."""
PAST: Final = Freshness(3_600)
"""For the past. Limited, because maintenance may be added and audits may run later."""
REVALIDATE: Final = Freshness(0)


def respond(request: Request, body: Body, freshness: Freshness, *, vary: str = "") -> Response:
    """*body*, or 304 if the client has it already."""
    headers = {
        "ETag": body.etag,
        "Cache-Control": freshness.header(),
        "Vary": ", ".join(filter(None, ("Authorization", vary))),
    }
    if _matches(request.headers.get("if-none-match"), body.etag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return Response(
        body.content,
        media_type=None,
        headers={**headers, **dict(body.headers), "Content-Type": body.media},
    )


def _matches(header: str | None, etag: str) -> bool:
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
            media_type=PROBLEM,
            headers={"Cache-Control": "no-store", **problem.headers},
        )
