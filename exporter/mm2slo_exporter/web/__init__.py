"""The exporter's pages: scrapes, probes, an overview, and reloads."""
