"""The report service over HTTP: `create_app` makes it from a `Service`."""
