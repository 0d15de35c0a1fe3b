"""Lag of several partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class LagSum(NamedTuple):
    """Records that were not replicated or consumed, and the age of the oldest; None if unknown."""

    records: int | None
    seconds: float | None


UNKNOWN_LAG: Final = LagSum(None, None)


def sum_lags(found: Iterable[tuple[int | None, float | None]]) -> LagSum:
    """The sum of the records and the greatest age; unknown if known ones are 0 and others not."""
    every = list(found)
    records = [each for each, _seconds in every]
    total = sum(each for each in records if each)
    return LagSum(
        total if total or None not in records else None,
        largest_known(seconds for _records, seconds in every),
    )


def sum_known(values: Iterable[int | None]) -> int | None:
    """Sum of the known values; None when there are values but none is known."""
    found = list(values)
    known = [value for value in found if value is not None]
    return sum(known) if known or not found else None


def largest_known(values: Iterable[float | None]) -> float | None:
    """The largest value; None when it is 0 as far as known, and some are unknown."""
    found = list(values)
    largest = max((value for value in found if value is not None), default=0.0)
    return largest if largest > 0 or None not in found else None
