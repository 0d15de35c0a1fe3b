"""OpenSLO v1: the objectives in its words, and back from the part of it that we can hold.

Source: OpenSLO/OpenSLO, README of v1. An AlertCondition has one lookback window, so a pair is
exported by its long one; windows in pairs, the floor of events and the owner stay ours, the last
as annotations.
"""

from mm2slo_core.objectives.openslo.reading import Imported, read
from mm2slo_core.objectives.openslo.writing import write

__all__ = ["Imported", "read", "write"]
