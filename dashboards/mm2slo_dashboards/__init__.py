"""Grafana dashboards that answer a question per row: pure functions from the objectives to files.

The model (`model`, `boards`) knows nothing of Grafana's JSON; `grafana` knows nothing of metrics.
"""
