"""Runs the dashboards' queries against a real Prometheus that scrapes an exporter over a lab."""

from lab_dashboards.committing_group import CommittingGroup
from lab_dashboards.dashboard_client import LabDashboards, wait_until_equal
from lab_dashboards.monitored_lab import monitored_lab
from lab_dashboards.observed_flow import FLOW, observe_flow
from lab_dashboards.panel_faults import PANEL_FAULTS, covers_fault, declared_faults

__all__ = [
    "FLOW",
    "PANEL_FAULTS",
    "CommittingGroup",
    "LabDashboards",
    "covers_fault",
    "declared_faults",
    "monitored_lab",
    "observe_flow",
    "wait_until_equal",
]
