"""Requests and responses as values, apart from sockets."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from http import HTTPStatus


@dataclass(frozen=True, slots=True)
class Request:
    """A request without its body, which no endpoint reads. Header names are in lower case."""

    method: str
    path: str
    peer: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """A response; the body's chunks are sent one by one as they are."""

    status: HTTPStatus
    content_type: str
    chunks: tuple[bytes, ...]
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return sum(map(len, self.chunks))


def text_response(
    status: HTTPStatus, text: str, headers: tuple[tuple[str, str], ...] = ()
) -> Response:
    """One line of plain text."""
    return Response(status, "text/plain; charset=utf-8", (f"{text}\n".encode(),), headers)


def json_response(status: HTTPStatus, value: object) -> Response:
    """A JSON document for people and programs: indented, one newline at its end."""
    body = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return Response(status, "application/json; charset=utf-8", (body.encode(),))
