"""Latency histograms: brackets as packed bucket numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F

from mm2slo_core.audit.latency_histogram import PER_DOUBLING
from mm2slo_core.audit.unit_outcome import LatencyCells

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, Row

    from mm2slo_audit.engine.unit_columns import Units

NONE: Final = -1
"""The record is not matched, or its bracket is unknown."""
NEGATIVE: Final = -2
UNBRACKETED: Final = -3
"""The timeline has no bracket for the copy."""
_UPPERS: Final = 1024
"""Greater than any bucket number: 2^63 ms is in bucket 1008."""
_COUNT_BITS: Final = 40
_LOG2_ERROR: Final = 2e-13
"""Spark's log2 is one bit too high at some powers of two."""


def latency_bucket(ms: Column) -> Column:
    """`latency_histogram.bucket` of a non-negative latency."""
    log = F.log2(F.greatest(ms, F.lit(1)).cast("double"))
    return F.ceil(log * PER_DOUBLING - _LOG2_ERROR).cast("int")


def latency_columns(units: Units, counted: Column) -> dict[str, Column]:
    """Cells and bounds of pairs, for rows where *counted*.

    Reads ts, s_earliest, s_latest, t_earliest, t_latest (null: unknown). Gives `e_cell` (end to
    end) and `x_cell` (transfer), and the bounds `e_upper`, `e_lower`, ... in ms.
    """
    ts = F.col("ts")
    arrived, started = F.col("t_latest"), F.col("s_earliest")
    known = counted & arrived.isNotNull()
    lower = F.col("t_earliest")
    created = known & ~units.stamped_source
    sent = known & started.isNotNull()
    return {
        "e_cell": F.when(counted & arrived.isNull(), UNBRACKETED)
        .when(created, _cell(lower - ts, arrived - ts))
        .otherwise(NONE),
        "e_upper": F.when(created & (arrived >= ts), arrived - ts),
        "e_lower": F.when(created & (arrived >= ts), F.greatest(lower - ts, F.lit(0))),
        "x_cell": F.when(sent, _cell(lower - F.col("s_latest"), arrived - started)).otherwise(NONE),
        "x_upper": F.when(sent & (arrived >= started), arrived - started),
        "x_lower": F.when(
            sent & (arrived >= started), F.greatest(lower - F.col("s_latest"), F.lit(0))
        ),
    }


SUMS: Final = ("e_upper", "e_lower", "x_upper", "x_lower")


def pack_cells(kind: str) -> Column:
    """A cell and its count `n` in one number, for `unpack_cells`."""
    return F.shiftleft(F.col(f"{kind}_cell").cast("bigint") + 4, _COUNT_BITS) + F.col("n")


def unpack_cells(numbers: Iterable[int], upper: int | None, lower: int | None) -> LatencyCells:
    """The histogram of packed cells; counts of equal cells add up."""
    cells: dict[tuple[int | None, int], int] = {}
    negative = 0
    for number in numbers:
        cell, count = (number >> _COUNT_BITS) - 4, number & ((1 << _COUNT_BITS) - 1)
        if cell == NEGATIVE:
            negative += count
        elif cell >= 0:
            low, high = divmod(cell, _UPPERS)
            place = (None if low == 0 else low - 1, high)
            cells[place] = cells.get(place, 0) + count
    return LatencyCells(cells, negative, upper or 0, lower or 0)


def count_unbracketed(numbers: Iterable[int]) -> int:
    """Records without a bracket, from packed end-to-end cells."""
    return sum(
        number & ((1 << _COUNT_BITS) - 1)
        for number in numbers
        if (number >> _COUNT_BITS) - 4 == UNBRACKETED
    )


def unpack_row(row: Row) -> tuple[LatencyCells, LatencyCells, int]:
    """End-to-end and transfer histograms of a tallied row, and its records without a bracket."""
    return (
        unpack_cells(row.e_cells, row.e_upper, row.e_lower),
        unpack_cells(row.x_cells, row.x_upper, row.x_lower),
        count_unbracketed(row.e_cells),
    )


def _cell(lower: Column, upper: Column) -> Column:
    low = F.when(lower.isNull(), 0).otherwise(latency_bucket(F.greatest(lower, F.lit(0))) + 1)
    return F.when(upper < 0, NEGATIVE).otherwise(low * _UPPERS + latency_bucket(upper))
