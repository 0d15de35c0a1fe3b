"""The window of a unit in slices of time, so that a part of its records can be looked at alone.

Plain units compare timestamps, so all records of a group are in one slice, and so are a record and
where it moved to. A coarse slice has 64 fine ones, of which a mask of 64 bits names some.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from mm2slo_audit.engine.unit_columns import Units
    from mm2slo_core.audit.audit_scope import UnitScope

FINE: Final = 64
"""Fine slices of a coarse one."""
_FINE_BITS: Final = 6
_MOST: Final = 1 << 17
"""Coarse slices of all partitions together: what the driver may have to hold."""
_LEAST_OF_ONE: Final = 16
_MOST_OF_ONE: Final = 1 << 14
_FAR: Final = 1 << 40
"""TimeSlices of what lies farther from the window are one."""


@dataclass(frozen=True)
class TimeSlices:
    """TimeSlices of the windows of *units*."""

    units: Units

    def width(self, unit: UnitScope) -> int:
        """Of a fine slice, ms."""
        places = sum(len(each.partitions) for each in self.units.scopes) or 1
        coarse = max(_LEAST_OF_ONE, min(_MOST // places, _MOST_OF_ONE))
        span = unit.window.end - unit.window.start
        return max(1, -(-span // (coarse * FINE)))

    def at(self, unit: UnitScope, timestamp: int) -> tuple[int, int]:
        """Coarse slice and mask of a *timestamp* within the window."""
        coarse, fine = divmod((timestamp - unit.window.start) // self.width(unit), FINE)
        return coarse, signed(1 << fine)

    @property
    def coarse(self) -> Column:
        """The coarse slice of a row's `ts`."""
        return F.shiftright(self._number, _FINE_BITS)

    @property
    def mask(self) -> Column:
        """The one bit of the row's fine slice."""
        one = F.lit(1).cast("bigint")
        return F.call_function("shiftleft", one, self._number.bitwiseAND(FINE - 1).cast("int"))

    def sliced(self, frame: DataFrame) -> DataFrame:
        """Rows with `coarse` and `fine`, a mask."""
        return frame.withColumns({"coarse": self.coarse, "fine": self.mask})

    @property
    def _number(self) -> Column:
        start = self.units.figure(lambda each: each.window.start)
        width = self.units.figure(self.width)
        # Integral division, of which the expression language has no method.
        number = F.call_function("div", F.col("ts") - start, width)
        return F.greatest(F.lit(-_FAR), F.least(F.lit(_FAR), number))


def signed(mask: int) -> int:
    """64 bits as Spark's bigint."""
    return mask - (1 << FINE) if mask >> (FINE - 1) else mask
