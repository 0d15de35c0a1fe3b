"""Output format of a report, from the Accept header (RFC 9110, 12.5.1)."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import Final

from mm2slo_report.web.problem_details import ProblemError


class ReportFormat(StrEnum):
    """Values of the parameter `format`."""

    JSON = "json"
    CSV = "csv"
    MARKDOWN = "md"
    HTML = "html"


MEDIA: Final = {
    ReportFormat.JSON: "application/json",
    ReportFormat.CSV: "text/csv",
    ReportFormat.MARKDOWN: "text/markdown",
    ReportFormat.HTML: "text/html",
}
_ANY: Final = "*/*"


def prefers_html(accept: str | None) -> bool:
    """Whether *accept* is that of a browser: HTML rather than JSON."""
    ranges = _ranges(accept)
    return _quality(ranges, MEDIA[ReportFormat.HTML]) > _quality(ranges, MEDIA[ReportFormat.JSON])


def negotiate_format(accept: str | None) -> ReportFormat:
    """The best format for *accept*; JSON if all are equal. Raises ProblemError (406)."""
    ranges = _ranges(accept)
    best: tuple[float, ReportFormat] | None = None
    for format_, media in MEDIA.items():
        quality = _quality(ranges, media)
        if quality > 0 and (best is None or quality > best[0]):
            best = (quality, format_)
    if best is None:
        raise ProblemError(
            HTTPStatus.NOT_ACCEPTABLE,
            "not-acceptable",
            "no report format matches the Accept header",
            accepted=list(MEDIA.values()),
        )
    return best[1]


def _ranges(accept: str | None) -> list[tuple[str, float]]:
    return [_range(each) for each in (accept or _ANY).split(",") if each.strip()]


def _quality(ranges: list[tuple[str, float]], media: str) -> float:
    """That of the most specific matching range; 0 without any."""
    matching = [(rank, q) for name, q in ranges if (rank := _rank(name, media))]
    return max(matching)[1] if matching else 0.0


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
    """How specifically the range *name* matches *media*; 0 if it does not."""
    if name == media:
        return 3
    if name == f"{media.partition('/')[0]}/*":
        return 2
    return 1 if name == _ANY else 0
