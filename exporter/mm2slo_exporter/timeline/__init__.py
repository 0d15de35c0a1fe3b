"""Writes and restores the watermark timeline."""
