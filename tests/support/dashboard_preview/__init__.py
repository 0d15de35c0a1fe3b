"""The generated dashboards drawn as static HTML pages from a Prometheus, without Grafana."""
