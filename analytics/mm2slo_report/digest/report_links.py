"""Links from a digest to its report."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from mm2slo_core.reporting.report_entry import WindowKind

if TYPE_CHECKING:
    from mm2slo_core.reporting.slo_report import Report

_LONGEST: Final = 1_000
_UNSAFE: Final = str.maketrans({"|": "%7C", "<": "%3C", ">": "%3E", " ": "%20", "`": "%60"})


@dataclass(frozen=True, slots=True)
class ReportLinks:
    """Links to the report service at its public address `base`; None: no links."""

    base: str | None = None

    def report_url(self, report: Report) -> str | None:
        """The page that shows *report* with these figures, at any later time."""
        if self.base is None:
            return None
        at = datetime.fromtimestamp(report.as_of / 1000, UTC)
        query = {"format": "html", "at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
        if report.window is not None:
            query["period"] = report.window.name
            if report.window.kind is WindowKind.CALENDAR and report.window.end < report.as_of:
                # A finished period does not change.
                del query["at"]
        url = f"{self.base.rstrip('/')}/slo/report?{urlencode(query)}".translate(_UNSAFE)
        return url if len(url) <= _LONGEST else None
