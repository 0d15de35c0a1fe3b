"""The embedded recorder: stores the exporters' SLI counters in steps of five minutes."""
