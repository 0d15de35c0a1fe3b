"""State of a flow on the target, from which an exporter continues after a restart."""
