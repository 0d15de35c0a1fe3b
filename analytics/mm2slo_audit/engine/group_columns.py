"""Columns that equal records of both sides share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mm2slo_audit.engine.unit_columns import Units

GROUP: Final = ("topic", "group_partition", "group_ts", "fp")
"""Columns that identify a group of equal records."""


def add_group_columns(records: DataFrame, units: Units) -> DataFrame:
    """The records of *units*, with the columns of `GROUP`."""
    return units.of(records).withColumns(
        {"group_partition": units.group_partition, "group_ts": units.group_ts}
    )
