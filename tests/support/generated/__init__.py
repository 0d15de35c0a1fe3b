"""Records of both sides with faults whose truth is known, made without a cluster."""

from generated.partition import Faults
from generated.sampled import sampled
from generated.unit import Generated, generate

__all__ = ["Faults", "Generated", "generate", "sampled"]
