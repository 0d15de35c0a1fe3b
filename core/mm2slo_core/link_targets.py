"""Targets of links in alerts and reports: Grafana dashboards and searches in Splunk Web.

The uid of a dashboard never changes, so that bookmarks and links in old messages keep working.
Grafana allows 40 characters.
"""

from enum import StrEnum
from typing import Final
from urllib.parse import quote


class DashboardUid(StrEnum):
    """The value is Grafana's `uid`."""

    FLEET = "mm2slo-overview"
    FLOW = "mm2slo-flow"
    FAILOVER = "mm2slo-failover"
    AUDIT = "mm2slo-audit"
    SLO = "mm2slo-slo"
    PIPELINE = "mm2slo-pipeline"


_START: Final = quote("search `repl_index` ", safe="")

# The lines about offset commits repeat every minute for each task.
_END: Final = quote("NOT event_action=offsets_committing | `repl_dedup`", safe="")


def search_url(base: str, flow: str | None, *, earliest: str, latest: str) -> str:
    """Return the URL of the events of *flow*, or of all flows.

    *flow* is URL-encoded, or a template whose result is. The times are epoch seconds or relative
    times of Splunk, such as `-6h`; they are the last parameters.
    """
    condition = "" if flow is None else f"flow%3D%22{flow}%22%20"
    return (
        f"{base.rstrip('/')}/app/repl_observability/search?q={_START}{condition}{_END}"
        f"&earliest={earliest}&latest={latest}"
    )
