"""A flow of many partitions on two plain brokers, kept moving without MirrorMaker 2.

What MirrorMaker 2 would write (copies, offset syncs, committed offsets, checkpoints) is written
by this process in MirrorMaker 2's formats and rhythm; brokers and exporter are the real ones.
"""

from large_flow.exporter import ExporterProcess, rss
from large_flow.large_flow import LargeFlow, Shape
from large_flow.mover import Mover

__all__ = ["ExporterProcess", "LargeFlow", "Mover", "Shape", "rss"]
