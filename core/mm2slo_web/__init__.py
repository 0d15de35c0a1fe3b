"""The web server of the exporter and of the report service: uvicorn with TLS, limits and access."""
