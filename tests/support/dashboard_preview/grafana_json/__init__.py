"""Grafana's JSON of our boards, read into what the preview draws; what it does not know fails."""
