"""Observation in, flow state out: deterministic, no I/O, all times passed in."""
