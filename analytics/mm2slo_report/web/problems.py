"""Errors as problem documents (RFC 9457, `application/problem+json`)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA: Final = "application/problem+json"
ALWAYS_TOLD: Final = ("type", "title", "status", "detail")
"""Members of every document."""
_TYPE: Final = "urn:mm2slo:problem:"


class Problem(Exception):  # noqa: N818 - "problem" is its name throughout the project
    """A request that cannot be answered: *detail* is a sentence for people, without secrets.

    *kind* tells programs which one it is. *more* are further members of the document, as `near`
    for the ids that were likely meant and `accepted` for the forms that a parameter has.
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
        """In JSON's own types."""
        return {
            "type": f"{_TYPE}{self.kind}",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            **{name: value for name, value in self.more.items() if value},
        }

    def body(self) -> bytes:
        """As UTF-8."""
        # What a request said may hold lone surrogates, which UTF-8 cannot: escaped, it is ASCII.
        return json.dumps(self.document(), indent=2).encode() + b"\n"


def unknown(what: str, wanted: str, near: tuple[str, ...] = ()) -> Problem:
    """404: there is no *what* of that name."""
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return Problem(
        HTTPStatus.NOT_FOUND, "unknown", f"there is no {what} {wanted!r}{hint}", near=list(near)
    )


def refused(parameter: str, detail: str, *accepted: str) -> Problem:
    """422: the value of a parameter cannot be taken; *accepted* are examples of those that can."""
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "parameter",
        detail,
        parameter=parameter,
        accepted=list(accepted),
    )
