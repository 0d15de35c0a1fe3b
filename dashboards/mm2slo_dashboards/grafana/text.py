"""Dashboards as text: the same board always gives the same bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from grafanalib._gen import DashboardEncoder

from mm2slo_dashboards.grafana.dashboard import dashboard
from mm2slo_dashboards.grafana.normalise import normalised

if TYPE_CHECKING:
    from mm2slo_dashboards.links import Links
    from mm2slo_dashboards.model import Board


def document(board: Board, links: Links) -> dict[str, Any]:
    """The dashboard as JSON's own types."""
    written = json.dumps(dashboard(board, links).to_json_data(), cls=DashboardEncoder)
    return normalised(json.loads(written))


def text(board: Board, links: Links) -> str:
    """The dashboard as Grafana imports and provisions it."""
    found = document(board, links)
    return json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
