"""Dashboards as JSON text; the same dashboard always gives the same bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grafanalib._gen import DashboardEncoder

from mm2slo_dashboards.grafana.grafanalib_dashboard import convert_dashboard
from mm2slo_dashboards.grafana.json_normalisation import normalise_dashboard

if TYPE_CHECKING:
    from mm2slo_dashboards.dashboard_links import Links
    from mm2slo_dashboards.dashboard_model import Dashboard


def build_document(dashboard: Dashboard, links: Links) -> dict[str, Any]:
    """The dashboard as JSON types."""
    written = json.dumps(convert_dashboard(dashboard, links).to_json_data(), cls=DashboardEncoder)
    return normalise_dashboard(json.loads(written))


def render_dashboard(dashboard: Dashboard, links: Links) -> str:
    """The dashboard as Grafana imports and provisions it."""
    document = build_document(dashboard, links)
    return (
        json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    )
