"""The report service over HTTP: `create_app` builds the application from a `ReportService`."""
