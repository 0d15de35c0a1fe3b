"""Grafana's JSON from the model, in the current format; grafanalib frames dashboards."""
