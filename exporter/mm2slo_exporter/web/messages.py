"""Requests and responses as values, apart from ASGI."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from http import HTTPStatus

_PART_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """A request without its body, which no endpoint reads. Header names are in lower case."""

    method: str
    path: str
    peer: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    status: HTTPStatus
    content_type: str
    chunks: tuple[bytes, ...]
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def length(self) -> int:
        """Bytes of the body."""
        return sum(map(len, self.chunks))

    def parts(self) -> Iterator[bytes]:
        """The body to be sent: small chunks gathered, large ones as they are."""
        gathered = bytearray()
        for chunk in self.chunks:
            if gathered and len(gathered) + len(chunk) > _PART_BYTES:
                yield bytes(gathered)
                gathered.clear()
            if len(chunk) >= _PART_BYTES:
                yield chunk
            else:
                gathered += chunk
        if gathered:
            yield bytes(gathered)


def text_response(
    status: HTTPStatus, text: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Response:
    """One line of plain text."""
    return Response(status, "text/plain; charset=utf-8", (f"{text}\n".encode(),), headers)


def json_response(status: HTTPStatus, value: object) -> Response:
    """A JSON document for people and programs: indented, one newline at its end."""
    body = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return Response(status, "application/json; charset=utf-8", (body.encode(),))
