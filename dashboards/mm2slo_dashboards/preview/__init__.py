"""What a dashboard's JSON shows, without Grafana."""
