"""A history for Prometheus of any density, written in its own format.

promtool makes blocks of text, a few hundred thousand samples a second; what a large fleet leaves in
a month are hundreds of millions. Here chunks that are alike are encoded once.
"""

from tsdb.block import Series, write_blocks
from tsdb.chunks import LONGEST, SamplePattern

__all__ = ["LONGEST", "SamplePattern", "Series", "write_blocks"]
