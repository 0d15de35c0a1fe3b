"""From the model to Grafana's JSON: grafanalib writes it, `normalise` makes it current."""
