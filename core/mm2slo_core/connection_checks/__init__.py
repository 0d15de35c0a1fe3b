"""What `mm2slo check --connect` judges: permissions, readers of both clusters, settings."""
