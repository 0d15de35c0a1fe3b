"""Turns observations into flow reports. Deterministic, without I/O; all times are passed in."""
