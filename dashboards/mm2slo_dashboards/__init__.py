"""Grafana dashboards with thresholds from the objectives, as files.

The boards and `dashboard_model` know nothing of Grafana's JSON; `grafana_json` knows nothing of
metrics.
"""
