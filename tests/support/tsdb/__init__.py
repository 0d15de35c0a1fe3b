"""Writes a dense history in Prometheus's block format.

A month of a large fleet has hundreds of millions of samples, and promtool converts a few hundred
thousand per second. This package encodes identical chunks once.
"""

from tsdb.block_writer import Series, write_blocks
from tsdb.xor_chunks import MAX_SAMPLES, SamplePattern

__all__ = ["MAX_SAMPLES", "SamplePattern", "Series", "write_blocks"]
