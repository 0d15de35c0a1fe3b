"""The embedded recorder: stores the exporters' SLI counters by the minute in the results store."""
