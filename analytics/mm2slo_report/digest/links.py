"""Where a digest leads: the report that it is of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from mm2slo_core.reporting.entry import WindowKind

if TYPE_CHECKING:
    from mm2slo_core.reporting.report import Report

_LONGEST: Final = 1_000
_UNSAFE: Final = str.maketrans({"|": "%7C", "<": "%3C", ">": "%3E", " ": "%20", "`": "%60"})


@dataclass(frozen=True, slots=True)
class Links:
    """Links to the report service at `base`, as people reach it; None: there are none."""

    base: str | None = None

    def report(self, report: Report) -> str | None:
        """The page that shows *report* as it is now, tomorrow as well."""
        if self.base is None:
            return None
        at = datetime.fromtimestamp(report.as_of / 1000, UTC)
        query = {"format": "html", "at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
        if report.window is not None:
            query["period"] = report.window.name
            if report.window.kind is WindowKind.CALENDAR and report.window.end < report.as_of:
                # What is over is the same at any later instant.
                del query["at"]
        url = f"{self.base.rstrip('/')}/slo/report?{urlencode(query)}".translate(_UNSAFE)
        return url if len(url) <= _LONGEST else None
