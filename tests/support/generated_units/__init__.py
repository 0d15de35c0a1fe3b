"""Generated records of both sides with known faults, without a cluster."""

from generated_units.drawn_samples import Drawing
from generated_units.generated_unit import Generated, generate
from generated_units.simulated_partition import Faults

__all__ = ["Drawing", "Faults", "Generated", "generate"]
