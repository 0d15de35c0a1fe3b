"""Which form of a report a client wants: by `format`, else by `Accept` (RFC 9110, 12.5.1)."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import Final

from mm2slo_report.web.problems import Problem


class Form(StrEnum):
    """The forms of a report; the value is that of `format`."""

    JSON = "json"
    CSV = "csv"
    MARKDOWN = "md"
    HTML = "html"


MEDIA: Final = {
    Form.JSON: "application/json",
    Form.CSV: "text/csv",
    Form.MARKDOWN: "text/markdown",
    Form.HTML: "text/html",
}
_ANY: Final = "*/*"


def form_of(accept: str | None) -> Form:
    """The form that suits *accept* best, JSON where any does. Raises Problem (406)."""
    ranges = [_range(each) for each in (accept or _ANY).split(",") if each.strip()]
    best: tuple[float, Form] | None = None
    for form, media in MEDIA.items():
        # The most specific range that matches tells how welcome the form is.
        fitting = [(rank, q) for name, q in ranges if (rank := _rank(name, media))]
        if not fitting:
            continue
        welcome = max(fitting)[1]
        if welcome > 0 and (best is None or welcome > best[0]):
            best = (welcome, form)
    if best is None:
        raise Problem(
            HTTPStatus.NOT_ACCEPTABLE,
            "form",
            "a report has none of the forms that Accept names",
            accepted=list(MEDIA.values()),
        )
    return best[1]


def _range(text: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in text.split(";"))
    for each in parameters:
        key, _, value = each.partition("=")
        if key.strip() == "q":
            try:
                return name, min(max(float(value), 0.0), 1.0)
            except ValueError:
                return name, 0.0
    return name, 1.0


def _rank(name: str, media: str) -> int:
    """How specifically the range *name* matches *media*; 0: not at all."""
    if name == media:
        return 3
    if name == f"{media.partition('/')[0]}/*":
        return 2
    return 1 if name == _ANY else 0
