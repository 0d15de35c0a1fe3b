"""The exporter: reads clusters in the background and serves the newest snapshot."""
