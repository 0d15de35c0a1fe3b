"""The `mm2slo` command: composes the rooms, imports each lazily."""
