"""Uids of the Grafana dashboards, used in links, alerts and URLs.

A uid never changes, so that bookmarks and links in old messages keep working. Grafana allows 40
characters.
"""

from __future__ import annotations

from enum import StrEnum


class DashboardUid(StrEnum):
    """The value is Grafana's `uid`."""

    FLEET = "mm2slo-overview"
    FLOW = "mm2slo-flow"
    FAILOVER = "mm2slo-failover"
    AUDIT = "mm2slo-audit"
    SLO = "mm2slo-slo"
    PIPELINE = "mm2slo-pipeline"
