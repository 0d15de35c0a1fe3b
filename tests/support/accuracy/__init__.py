"""Measures the figures of docs/accuracy.md."""
