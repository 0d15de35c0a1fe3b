"""The dashboards' identities: what links, alerts and Grafana's addresses name them by.

An identity is never derived from a title and never changes, or every bookmark and every link in an
old message would lead nowhere. Grafana takes up to 40 characters.
"""

from __future__ import annotations

from enum import StrEnum


class DashboardUid(StrEnum):
    """The dashboards; the value is Grafana's `uid`."""

    FLEET = "mm2slo-overview"
    FLOW = "mm2slo-flow"
    FAILOVER = "mm2slo-failover"
    AUDIT = "mm2slo-audit"
    SLO = "mm2slo-slo"
    PIPELINE = "mm2slo-pipeline"
