"""Records of both sides with faults whose truth is known, made without a cluster."""

from generated.partition import Faults
from generated.sampled import Drawing
from generated.unit import Generated, generate

__all__ = ["Drawing", "Faults", "Generated", "generate"]
