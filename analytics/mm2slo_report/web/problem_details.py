"""Errors as problem documents (RFC 9457, `application/problem+json`)."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from mm2slo_report.rendering.response_model import ResponseModel

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA: Final = "application/problem+json"
_TYPE: Final = "urn:mm2slo:problem:"


class Problem(ResponseModel):
    type: Annotated[str, Field(pattern=f"^{_TYPE}")]
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
            "type": f"{_TYPE}{self.kind}",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            **{name: value for name, value in self.more.items() if value},
        }

    def body(self) -> bytes:
        # Request text may hold lone surrogates, which UTF-8 cannot encode; ASCII escapes can.
        return json.dumps(self.document(), indent=2).encode() + b"\n"


def not_found(what: str, wanted: str, near: tuple[str, ...] = ()) -> ProblemError:
    """404: unknown name *wanted* of a *what*."""
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return ProblemError(
        HTTPStatus.NOT_FOUND, "not-found", f"unknown {what} {wanted!r}{hint}", near=list(near)
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
