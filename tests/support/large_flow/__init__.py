"""A flow of many partitions on two real brokers, replicated without MirrorMaker 2.

The package writes copies, offset syncs, committed offsets and checkpoints in MirrorMaker 2's
formats and intervals; brokers and exporter are real.
"""

from large_flow.exporter_process import ExporterProcess
from large_flow.large_flow import LargeFlow, Mover, Shape

__all__ = ["ExporterProcess", "LargeFlow", "Mover", "Shape"]
