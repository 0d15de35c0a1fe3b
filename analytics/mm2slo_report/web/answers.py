"""Answers as bytes, with the headers that let clients ask less often (RFC 9110, 9111)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from fastapi import Response

from mm2slo_report.web.problems import MEDIA as PROBLEM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import Request

    from mm2slo_report.web.problems import Problem

JSON: Final = "application/json"
YAML: Final = "application/yaml"
_NOT_MODIFIED: Final = 304


@dataclass(frozen=True)
class Body:
    """What is answered; the same for everyone who asks the same."""

    content: bytes
    media: str
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, document: Any) -> Body:
        """A document as JSON. Raises ValueError for NaN and infinities, which JSON has not."""
        text = json.dumps(document, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        return cls(text.encode(), JSON)

    @classmethod
    def text(cls, text: str, media: str, headers: Mapping[str, str] | None = None) -> Body:
        """Text of a media type."""
        return cls(text.encode(), f"{media}; charset=utf-8", tuple((headers or {}).items()))

    @cached_property
    def etag(self) -> str:
        """A strong validator."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:24]}"'


@dataclass(frozen=True, slots=True)
class Freshness:
    """How long an answer may be used without asking again, in seconds."""

    seconds: int

    def header(self) -> str:
        """`Cache-Control`; private, since a token may have been needed."""
        return f"private, max-age={self.seconds}" if self.seconds else "no-cache"


NOW: Final = Freshness(15)
"""Of the present minute."""
PAST: Final = Freshness(3_600)
"""Of what has passed. Not for ever: maintenance may be added and audits may run afterwards."""
ALWAYS_ASK: Final = Freshness(0)


def respond(request: Request, body: Body, freshness: Freshness, *, vary: str = "") -> Response:
    """*body*, or 304 for one who has it already."""
    headers = {
        "ETag": body.etag,
        "Cache-Control": freshness.header(),
        "Vary": ", ".join(filter(None, ("Authorization", vary))),
    }
    if _has(request.headers.get("if-none-match"), body.etag):
        return Response(status_code=_NOT_MODIFIED, headers=headers)
    return Response(
        body.content,
        media_type=None,
        headers={**headers, **dict(body.headers), "Content-Type": body.media},
    )


def _has(header: str | None, etag: str) -> bool:
    """By the weak comparison, as RFC 9110 (13.1.2) asks for."""
    if header is None:
        return False
    known = [each.strip().removeprefix("W/") for each in header.split(",")]
    return etag in known or known == ["*"]


class ProblemResponse(Response):
    """A problem as an answer; nobody keeps it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(
            problem.body(),
            status_code=problem.status,
            media_type=PROBLEM,
            headers={"Cache-Control": "no-store", **problem.headers},
        )
