"""Base URLs for links in reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from mm2slo_core.splunk_search import search_url

if TYPE_CHECKING:
    from mm2slo_core.reporting.report_entry import Incident
    from mm2slo_core.topology import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """URLs without a trailing slash.

    `service` is the external URL of this service; empty makes links relative, None omits
    them, as for a file that is passed on.
    """

    service: str | None = ""
    dashboard: str | None = None
    """Grafana."""
    runbook: str | None = None
    prometheus: str | None = None
    rules_version: str | None = None
    """Of the recording rules that produced the values."""
    splunk: str | None = None
    """Splunk Web."""

    def logs_url(self, flow: Flow, incident: Incident) -> str | None:
        """The search of the flow's log events during the incident."""
        if self.splunk is None:
            return None
        return search_url(
            self.splunk,
            quote(flow.label, safe=""),
            earliest=str(incident.start // 1000),
            latest=str(-(-incident.end // 1000)),
        )
