"""Grafana dashboards with thresholds from the objectives, as files.

`dashboard_model` and `boards` know nothing of Grafana's JSON; `grafana` knows nothing of metrics.
"""
