"""Assembles the exporter: clusters, flows, the canary process, snapshots."""
