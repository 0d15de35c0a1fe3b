"""Grafana's JSON from the model: grafanalib writes it, `json_normalisation` updates its format."""
