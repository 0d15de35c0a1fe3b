"""Scopes of a run: what it may judge, read from both clusters by the driver."""
