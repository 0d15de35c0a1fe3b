"""The `mm2slo` command: combines the packages and imports them lazily."""
