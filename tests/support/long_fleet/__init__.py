"""A month of a large fleet in a Prometheus, and the dashboards' questions as Grafana asks them.

The series are those that the boards read, from the catalogue: a panel that is added finds its own.
"""

from long_fleet.asking import Answer, Asked, ask, board_queries, reach
from long_fleet.series import RAW, fleet_series
from long_fleet.shape import Shape

__all__ = ["RAW", "Answer", "Asked", "Shape", "ask", "board_queries", "fleet_series", "reach"]
