"""Time slices of a unit's window, so that a part of its records can be read alone.

Plain units compare timestamps, so all records of a group are in one slice, as are a record and its
moved copy. A coarse slice has 64 fine ones, which a 64-bit mask selects.
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
"""Fine slices per coarse slice."""
_FINE_BITS: Final = 6
_MOST: Final = 1 << 17
"""Coarse slices of all partitions together: the driver may have to hold them."""
_LEAST_OF_ONE: Final = 16
_MOST_OF_ONE: Final = 1 << 14
_FAR: Final = 1 << 40
"""Records farther from the window share one slice."""


@dataclass(frozen=True)
class TimeSlices:
    units: Units

    def width(self, unit: UnitScope) -> int:
        """Width of a fine slice, ms."""
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
        """The mask of the row's fine slice."""
        one = F.lit(1).cast("bigint")
        return F.call_function("shiftleft", one, self._number.bitwiseAND(FINE - 1).cast("int"))

    def sliced(self, frame: DataFrame) -> DataFrame:
        """Rows with columns `coarse` and `fine` (a mask)."""
        return frame.withColumns({"coarse": self.coarse, "fine": self.mask})

    @property
    def _number(self) -> Column:
        start = self.units.per_unit(lambda each: each.window.start)
        width = self.units.per_unit(self.width)
        # Integral division is not a method of Column.
        number = F.call_function("div", F.col("ts") - start, width)
        return F.greatest(F.lit(-_FAR), F.least(F.lit(_FAR), number))


def signed(mask: int) -> int:
    """A 64-bit mask as Spark's signed bigint."""
    return mask - (1 << FINE) if mask >> (FINE - 1) else mask
