"""A month of a large fleet in a Prometheus, and the dashboards' queries as Grafana sends them.

The series come from the catalogue, so an added panel finds its own.
"""

from fleet_history.fleet_series import RAW, fleet_series
from fleet_history.fleet_shape import Shape
from fleet_history.query_cost import PanelQuery, QueryCost, dashboard_queries, lookback, run_query

__all__ = [
    "RAW",
    "PanelQuery",
    "QueryCost",
    "Shape",
    "dashboard_queries",
    "fleet_series",
    "lookback",
    "run_query",
]
